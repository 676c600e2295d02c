// comm::Nccl with values on the host, for the tests of all backends.
#pragma once

#include <pdp/comm/nccl.hpp>

#include "comm/staged.hpp"

using Staged = StagedOver<pdp::comm::Nccl>;
static_assert(pdp::comm::Communicator<Staged> && pdp::comm::HasReduceScatter<Staged>);
