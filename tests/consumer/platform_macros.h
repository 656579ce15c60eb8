/* Macros of Qt, Xlib, Windows, Unreal and old Unix headers that a game's file may have before Imprint's. */
#pragma once

#define signals public
#define slots
#define emit
#define foreach for
#define forever for (;;)
#define Q_OBJECT

#define None 0L
#define Status int
#define Success 0
#define Bool int
#define True 1
#define False 0
#define Always 2
#define Never 3
#define Above 0
#define Below 1
#define Complex 0
#define Convex 2
#define CurrentTime 0L
#define CursorShape 0
#define Expose 12
#define FocusIn 9
#define KeyPress 2
#define Unsorted 0

#define near
#define far
#define interface struct
#define small char
#define hyper long
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define ERROR 0
#define NO_ERROR 0
#define IN
#define OUT
#define OPTIONAL
#define DELETE 0x00010000L
#define CALLBACK __stdcall
#define CONST const
#define VOID void
#define TRUE 1
#define FALSE 0
#define STRICT 1
#define DEBUG 1
#define ABSOLUTE 1
#define RELATIVE 2
#define DIFFERENCE 11
#define IGNORE 0
#define INFINITE 0xFFFFFFFF
#define OPAQUE 2
#define PASSTHROUGH 19
#define TRANSPARENT 1
#define CreateWindow CreateWindowW
#define GetCurrentTime() GetTickCount()
#define GetMessage GetMessageW
#define GetObject GetObjectW
#define LoadLibrary LoadLibraryW
#define SendMessage SendMessageW
#define Yield()

#define check(x) ((void)0)
#define verify(x) ((void)0)
#define ensure(x) (x)
#define require(x) ((void)0)
#define TEXT(x) L##x
#define PI 3.14159265f

#define I _Complex_I
#define T T_of_a_game
#define index rindex
#define major(x) 0
#define minor(x) 0
#define unix 1
#define linux 1
