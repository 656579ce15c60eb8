/* Macros of Unreal, of the standard library's complex.h and math.h, and of old Unix headers. */
#pragma once

#include "standard.h"

#define check(x) ((void)0)
#define verify(x) ((void)0)
#define ensure(x) (x)
#define require(x) ((void)0)
#define TEXT(x) L##x
#define PI 3.14159265f
#define DEBUG 1

#define I _Complex_I
#define T T_of_a_game
#define DOMAIN 1
#define OVERFLOW 3
#define UNDERFLOW 4
#define index rindex
#define major(x) 0
#define minor(x) 0
#define unix 1
#define linux 1
