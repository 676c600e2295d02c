// Added to whatever links pdp::gloo.
#include <pdp/comm/gloo/source.hpp>
