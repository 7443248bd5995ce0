export interface Fact { id:string; class:string; question:string; answer:string; must: readonly string[] }
export interface Search { query:string; why:string; holds: readonly (readonly string[])[] }
export const facts: readonly Fact[] = [];
export const searches: readonly Search[] = [];
