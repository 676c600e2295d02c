// Added to whatever links pdp::onednn.
#include <pdp/host/onednn/source.hpp>
