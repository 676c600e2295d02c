// Compiled once for a program. Nothing but weak references names it, so it is linked as a whole archive.
#include <pdp/cpu/onednn.hpp>
