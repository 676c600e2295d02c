// What pdp's kernels use of CUDA's float16, for the stand-in beside this file.
#pragma once

using __half = _Float16;
