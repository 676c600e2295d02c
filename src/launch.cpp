// Added to whatever links pdp::launch.
#include <pdp/launch/source.hpp>
