/* Macros of X11/X.h and X11/Xlib.h, for machines without them. */
#pragma once

#include "standard.h"

#define Above 0
#define Always 2
#define Below 1
#define Bool int
#define ButtonPress 4
#define Complex 0
#define ControlMask (1 << 2)
#define Convex 2
#define CurrentTime 0L
#define CursorShape 0
#define DestroyAll 0
#define Expose 12
#define False 0
#define FocusIn 9
#define FocusOut 10
#define GrayScale 1
#define KeyPress 2
#define KeyRelease 3
#define Never 3
#define None 0L
#define Opposite 4
#define Status int
#define Success 0
#define True 1
#define Unsorted 0
#define Xlib 11
