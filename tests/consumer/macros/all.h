/* All of them at once. */
#pragma once

#include "engines.h"
#include "qt.h"
#include "windows.h"
#include "xlib.h"
