#ifndef IMPRINT_VERSION_H_
#define IMPRINT_VERSION_H_
/* The one place where Imprint's version is written; CMake reads it from here. */
#define IMP_VERSION_STRING "0.1.0"
#endif
