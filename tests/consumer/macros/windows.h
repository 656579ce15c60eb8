/* Macros of windows.h without NOMINMAX and WIN32_LEAN_AND_MEAN, for machines without it. */
#pragma once

#include "standard.h"

#define near
#define far
#define NEAR
#define FAR
#define cdecl
#define pascal
#define interface struct
#define small char
#define hyper long
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define ABSOLUTE 1
#define ALTERNATE 1
#define CALLBACK __stdcall
#define CONST const
#define DELETE 0x00010000L
#define DIFFERENCE 11
#define ERROR 0
#define FALSE 0
#define IGNORE 0
#define IN
#define INFINITE 0xFFFFFFFF
#define NO_ERROR 0
#define OPAQUE 2
#define OPTIONAL
#define OUT
#define PASSTHROUGH 19
#define PURE = 0
#define RELATIVE 2
#define STRICT 1
#define THIS void
#define TRANSPARENT 1
#define TRUE 1
#define VOID void
#define CopyFile CopyFileW
#define CreateEvent CreateEventW
#define CreateFile CreateFileW
#define CreateMutex CreateMutexW
#define CreateSemaphore CreateSemaphoreW
#define CreateWindow CreateWindowW
#define DeleteFile DeleteFileW
#define DrawText DrawTextW
#define FindWindow FindWindowW
#define GetClassName GetClassNameW
#define GetCurrentTime() GetTickCount()
#define GetMessage GetMessageW
#define GetObject GetObjectW
#define LoadImage LoadImageW
#define LoadLibrary LoadLibraryW
#define MoveFile MoveFileW
#define RegisterClass RegisterClassW
#define ReportEvent ReportEventW
#define SendMessage SendMessageW
#define Yield()
