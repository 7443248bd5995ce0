import { DatabaseSync } from "node:sqlite";
import { Simulation } from "./simulation.ts";
import { rmSync, mkdirSync } from "node:fs";
for (const seed of process.argv.slice(2).map(Number)) {
rmSync("/tmp/sim5", {recursive:true, force:true}); mkdirSync("/tmp/sim5");
const s = new Simulation(seed, "/tmp/sim5/lcm.db"); await s.open(); const t=performance.now();
let tf=0; const modes=new Map<string,number>(); 
for (let i=1;i<=60;i++) { await s.step(); if (i%5===0) { const a=performance.now(); await s.findFaults(); tf+=performance.now()-a; 
 for (const b of [400,800,1500,3000,6000]) { const c=await s.engine.assemble({conversationId:1,budgetTokens:b}); if(c){ const k=c.mode+(c.items.some(i=>i.kind==="range")?"+range":"")+(c.items.some(i=>i.reason.startsWith("root"))?"+root":"")+(c.items.some(i=>i.reason.startsWith("reserve"))?"+res":"")+(c.items.some(i=>i.kind==="stub")?"+stub":""); modes.set(k,(modes.get(k)??0)+1);} } } }
const db = new DatabaseSync("/tmp/sim5/lcm.db");
const q=(sql:string)=>Object.values(db.prepare(sql).get() as any)[0];
console.log(seed, (performance.now()-t).toFixed(0), tf.toFixed(0), "msgs", q("select count(*) from messages"), "convs", q("select count(*) from conversations"), "sums", q("select group_concat(k||':'||n) from (select state||depth||case stale when 1 then 's' else '' end||case is_root when 1 then 'R' else '' end k, count(*) n from summaries group by 1)"), "mixed", q("select count(*) from (select summary_id from summary_messages intersect select summary_id from summary_parents)"), "hiddenS", q("select count(*) from context_items where summary_id is not null and hidden<>0"), [...modes]);
await s.close(); db.close(); }
