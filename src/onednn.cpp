// Compiled once for a program. It is referenced only by weak symbols, so it is linked as a whole archive.
#include <pdp/cpu/onednn.hpp>
