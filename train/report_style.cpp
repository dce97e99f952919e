// The report's style sheet. One set of colors for light, one for dark; the width decides the number of columns.
#include "cinta/train/report_sections.h"

namespace cinta::train {

const std::string_view report_style = R"(
:root{color-scheme:light dark;--page:#f6f8fa;--card:#fff;--line:#d8dee4;--text:#1f2328;--dim:#59636e;--track:#eaeef2;
--k0:#9cc5f7;--k1:#f8bb86;--k2:#98d8a3;--k3:#cbb2f5;--k4:#f5accb;--k5:#86d4d4;--k6:#e8d16a;--k7:#f3a198;--k8:#b8c2ce;
--k9:#dde2e8;--running:#0969da;--finished:#1a7f37;--stopped:#9a6700;--failed:#cf222e}
@media (prefers-color-scheme:dark){:root{--page:#010409;--card:#0d1117;--line:#262c36;--text:#f0f6fc;--dim:#9198a1;
--track:#1c222b;--k0:#1f5aa6;--k1:#94520f;--k2:#23743a;--k3:#6440ad;--k4:#96366c;--k5:#1a7377;--k6:#7d6608;--k7:#a33b33;
--k8:#4d5866;--k9:#2e353e;--running:#4493f8;--finished:#3fb950;--stopped:#d29922;--failed:#f85149}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1600px;margin:0 auto;padding:16px clamp(10px,2vw,28px) 40px}
h1{font-size:22px;margin:4px 0;overflow-wrap:anywhere}h2{font-size:18px;margin:28px 0 10px}
h2 small{font-size:13px;font-weight:400;color:var(--dim);margin-left:10px}
h3{font-size:14px;margin:0 0 8px}p{margin:0 0 8px;overflow-wrap:anywhere}.dim{color:var(--dim)}p.dim{font-size:13px}
.state{font-size:13px;font-weight:600;padding:2px 10px;border-radius:99px;color:#fff;vertical-align:3px;white-space:nowrap}
.state.running{background:var(--running)}.state.finished{background:var(--finished)}
.state.stopped{background:var(--stopped)}.state.failed{background:var(--failed)}
@media (prefers-color-scheme:dark){.state{color:#010409}}
.card,.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px;min-width:0}
.card{margin:0 0 12px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin-top:12px}
.tile h3{font-size:12px;font-weight:500;color:var(--dim);margin:0}.tile p{margin:0}.tile .dim{font-size:12px}
.value{font-size:24px;font-weight:600;font-variant-numeric:tabular-nums;line-height:1.3}
.value small{font-size:13px;font-weight:400;color:var(--dim)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,max(320px,30%)),1fr));gap:12px;margin-bottom:12px}
.chart{position:relative;padding:6px;margin:0}.chart svg{display:block}.plot .paper{fill:none}
.reading{position:absolute;pointer-events:none;background:var(--card);border:1px solid var(--line);border-radius:6px;
padding:4px 8px;font-size:12px;font-variant-numeric:tabular-nums;white-space:pre;box-shadow:0 2px 8px #0003}
.ruler{stroke:var(--dim);stroke-width:1;stroke-dasharray:3 3}
.columns{columns:560px 2;column-gap:12px}.columns .card{break-inside:avoid;display:inline-block;width:100%}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px}
th{font-weight:500;color:var(--dim);text-align:left;font-size:12px}
td,th{padding:3px 10px 3px 0;border-bottom:1px solid var(--line);white-space:nowrap}
tr:last-child td{border-bottom:0}.n{text-align:right;font-variant-numeric:tabular-nums}
td.n:last-child{width:28%;min-width:70px}td:last-child,th:last-child{padding-right:0}
code,pre{font:12px ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0 0 12px;background:var(--track);border-radius:6px;padding:10px}
td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:110px}.alive td.n:last-child{width:16%}
.times td:first-child,.alive td:first-child{padding-left:17px;position:relative}
td .dot{position:absolute;left:0;top:8px;margin:0}
.columns .card{container-type:inline-size}@container (max-width:640px){.alive tr>:last-child{display:none}}
.dot{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:7px}
.track{display:flex;height:10px;border-radius:3px;background:var(--track);overflow:hidden;min-width:50px}
.tile .track{margin:5px 0}.track i{height:100%}.late{opacity:.5}
.k0{background:var(--k0);fill:var(--k0)}.k1{background:var(--k1);fill:var(--k1)}.k2{background:var(--k2);fill:var(--k2)}
.k3{background:var(--k3);fill:var(--k3)}.k4{background:var(--k4);fill:var(--k4)}.k5{background:var(--k5);fill:var(--k5)}
.k6{background:var(--k6);fill:var(--k6)}.k7{background:var(--k7);fill:var(--k7)}.k8{background:var(--k8);fill:var(--k8)}
.k9{background:var(--k9);fill:var(--k9)}
.legend span{margin-right:16px;white-space:nowrap;font-size:13px;display:inline-block}
.timeline{position:relative;overflow-y:hidden}.wide{position:relative;min-width:100%}
.scale{position:sticky;left:0;width:0;height:130px;margin-bottom:-130px;z-index:2}
.scale span{position:absolute;left:2px;white-space:nowrap;font-size:11px;color:var(--dim);background:var(--card);
padding:0 3px;border-radius:3px;opacity:.85;transform:translateY(2px)}
.memory{position:relative;height:130px}.memory svg{position:absolute;width:100%;height:100%}
.rule{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke;fill:none;opacity:.7}
.peak{position:absolute;top:0;bottom:0;border-left:1.5px dashed var(--text)}
.peak b{position:absolute;left:5px;top:0;font-size:11px;line-height:1.2;background:var(--card);padding:1px 4px;border-radius:3px}
.peak.left b{left:auto;right:6px}
.ticks{position:relative;height:20px;border-top:1px solid var(--line);overflow:hidden;font-size:11px;color:var(--dim)}
.ticks span{position:absolute;top:2px;transform:translateX(-50%);white-space:nowrap}
.ticks .first{transform:none}.ticks .last{transform:translateX(-100%)}
.name{position:sticky;left:0;width:max-content;font-size:11px;color:var(--dim)}
.lane{position:relative;height:24px;margin-bottom:3px;background:var(--track);border-radius:3px;overflow:hidden}
.lane i{position:absolute;top:0;bottom:0;min-width:1px;overflow:hidden;font-style:normal;container-type:inline-size;
box-shadow:inset 1px 0 0 var(--card)}
.lane b{font:500 11px/24px system-ui,sans-serif;padding:0 4px;white-space:nowrap;display:block;overflow:hidden;
text-overflow:ellipsis}
@container (max-width:34px){.lane b{display:none}}
.mark{outline:2px solid var(--text);outline-offset:-2px;z-index:1}
.tape{display:flex;max-height:660px;overflow:auto;border-top:1px solid var(--line)}
.tape>div{flex:1;min-width:0}.arcs{flex:none}.arcs path{fill:none;stroke:var(--dim);opacity:.6}.arcs circle{fill:var(--text)}
.node{display:grid;grid-template-columns:minmax(90px,150px) minmax(0,260px) minmax(0,200px) minmax(60px,1fr) 78px;
gap:12px;height:26px;align-items:center;border-bottom:1px solid var(--line);font-size:13px}
.node>*{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.node:hover{background:var(--track)}
@media (max-width:760px){.node{grid-template-columns:minmax(80px,1fr) minmax(0,1fr) 72px}.node code,.node .track{display:none}}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,160px),1fr));gap:6px 18px;margin:0}
dt{color:var(--dim);font-size:12px}dd{margin:0;overflow-wrap:anywhere}
.evaluations{margin:0;max-height:min(340px,60vh);overflow:auto;min-height:100%}.evaluations td.n:last-child{width:auto}
.tools{float:right;display:flex;gap:6px;align-items:center;font-size:13px;color:var(--dim)}
button{font:inherit;color:var(--text);background:var(--track);border:1px solid var(--line);border-radius:6px;
min-width:30px;height:26px;cursor:pointer}
@media (max-width:560px){.times tr>:nth-child(2),.times tr>:last-child,.alive tr>:nth-child(3){display:none}
td,th{padding-right:6px}.tiles{grid-template-columns:1fr 1fr}}
)";

}  // namespace cinta::train
