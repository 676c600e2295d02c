// Compiled once for a program. Other code refers to it only by weak symbols, so its whole archive must be linked.
#include <pdp/cpu/onednn.hpp>
