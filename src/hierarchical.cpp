// Added to whatever links pdp::hierarchical.
#include <pdp/comm/hierarchical/source.hpp>
