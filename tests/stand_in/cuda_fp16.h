// The part of CUDA's float16 header that pdp's kernels use, for the stand-in beside this file.
#pragma once

using __half = _Float16;
