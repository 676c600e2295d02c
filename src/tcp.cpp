// Added to whatever links pdp::tcp.
#include <pdp/comm/tcp/source.hpp>
