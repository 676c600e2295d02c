// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/report/source/activity.hpp>
#include <pdp/report/source/axis.hpp>
#include <pdp/report/source/chart.hpp>
#include <pdp/report/source/curve.hpp>
#include <pdp/report/source/html.hpp>
#include <pdp/report/source/page.hpp>
#include <pdp/report/source/record.hpp>
#include <pdp/report/source/sample.hpp>
#include <pdp/report/source/step_chart.hpp>
