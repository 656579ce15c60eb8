/* The core without any other header. */
#include <imprint/imprint.h>

size_t size_of_table(void);
size_t size_of_table(void) { return sizeof(imp_api); }
