/* Qt's keywords, as each of its versions defines them. */
#pragma once

#include "standard.h"

#define signals public
#define slots
#define emit
#define foreach for
#define forever for (;;)
#define Q_OBJECT
#define Q_SIGNALS public
