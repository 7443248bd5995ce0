import { DatabaseSync } from "node:sqlite";
import { Simulation } from "./simulation.ts";
import { rmSync, mkdirSync } from "node:fs";
rmSync("/tmp/sim5", {recursive:true, force:true}); mkdirSync("/tmp/sim5");
const s = new Simulation(5, "/tmp/sim5/lcm.db"); await s.open();
for (let i=1;i<=21;i++) { await s.step(); if (i%5===0) await s.findFaults(); }
const db = new DatabaseSync("/tmp/sim5/lcm.db");
console.log(db.prepare("select * from boundaries").all().map((b:any)=>[b.conversation_id,b.position/2**20,b.reason,b.retain_depth]));
console.log(db.prepare("select conversation_id c, start_pos, end_pos, depth, messages, hidden,tokens, coalesce(summary_id,'') s from context_items order by 1,2").all().map((b:any)=>[b.c,b.start_pos/2**20,b.end_pos/2**20,b.depth,b.messages,b.hidden,b.tokens].join(" ")));
console.log(db.prepare("select conversation_id c, start_pos, end_pos, depth, messages, tokens,state,stale,is_root from summaries where state in ('reserve','prepared') order by created_at desc limit 5").all().map((b:any)=>[b.c,b.start_pos/2**20,b.end_pos/2**20,b.depth,b.messages,b.tokens,b.state,b.stale,b.is_root].join(" ")));
await s.close();
console.log(db.prepare("select start_pos, end_pos, depth, messages, state, stale, is_root, count(*) n, min(made_at_seq) a from summaries where state<>'cover' group by 1,2,3,4,5,6,7 order by n desc limit 8").all().map((b:any)=>[b.start_pos/2**20,b.end_pos/2**20,b.depth,b.messages,b.state,b.stale,b.is_root,b.n,b.a].join(" ")));
