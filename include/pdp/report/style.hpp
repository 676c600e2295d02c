#pragma once

#include <string_view>

#include <pdp/core/requirements.hpp>

/// The style of a page: light or dark as the reader's system is set, and from one to three columns as the window is wide.
namespace pdp::report {

inline constexpr std::string_view style = R"(
:root{color-scheme:light dark;--page:#f4f6f8;--card:#fff;--ink:#1b2430;--soft:#566172;--rule:#dde2e8;
--c1:#2f6fde;--c2:#d4622a;--c3:#22915a;--c4:#8a56c2;--bad:#c62838}
@media(prefers-color-scheme:dark){:root{--page:#11151b;--card:#1a2029;--ink:#e6eaf0;--soft:#9ba7b6;--rule:#323b47;
--c1:#6ea3ff;--c2:#f59a62;--c3:#5cc98f;--c4:#b88df0;--bad:#ff6b78}}
*{box-sizing:border-box}
body{margin:0 auto;padding:20px 16px 40px;max-width:1320px;background:var(--page);color:var(--ink);
font:15px/1.45 system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1{margin:0;font-size:26px;line-height:1.2}
h2{margin:0 0 6px;font-size:16px}
p{margin:4px 0}
header p,.note,figcaption{color:var(--soft);font-size:13.5px}
.warning{color:var(--bad);font-weight:600}
.tiles{display:flex;flex-wrap:wrap;gap:10px;margin:16px 0}
.tiles div{flex:1 1 140px;background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:8px 12px}
.tiles dt{color:var(--soft);font-size:13px}
.tiles dd{margin:0;font-size:20px;font-weight:600;line-height:1.3}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr));gap:14px}
.card{min-width:0;margin:0;background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 14px}
.wide{margin-top:14px}
svg{display:block;width:100%;overflow:visible}
svg text{fill:var(--soft);font-size:12px}
svg text.on{fill:#fff;font-size:11px}
.grid{stroke:var(--rule)}
.axis{stroke:var(--soft);fill:none}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
.band{opacity:.22}
.bad{fill:var(--bad)}
.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}
.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}
.c1{background:var(--c1)}.c2{background:var(--c2)}.c3{background:var(--c3)}.c4{background:var(--c4)}
.legend{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:13px;color:var(--soft);margin:4px 0}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:5px}
.rows{display:grid;grid-template-columns:auto minmax(0,1fr) auto;gap:8px}
.names span{display:block;height:28px;line-height:28px;font-size:13px;color:var(--soft);white-space:nowrap}
.scroll{overflow-x:auto;margin:4px 0}
table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums;overflow-wrap:normal}
th,td{padding:3px 14px 3px 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}
th:first-child{text-align:left}
thead th{font-weight:600;color:var(--soft)}
tbody th{font-weight:400}
details{margin-top:8px}
summary{cursor:pointer;color:var(--c1)}
ol{margin:6px 0;padding-left:44px;font-size:13.5px}
.facts{display:grid;grid-template-columns:minmax(96px,auto) minmax(0,1fr);gap:4px 16px;margin:0}
.facts dt{color:var(--soft)}
.facts dd{margin:0}
)";

}  // namespace pdp::report
