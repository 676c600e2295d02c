// Added to whatever links pdp::shm.
#include <pdp/comm/shm/source.hpp>
