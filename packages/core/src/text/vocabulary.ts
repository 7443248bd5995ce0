/**
 * Word lists: words that only ask, stop words of questions, and English forms that no suffix rule reaches. Lists are plain (lower case, no
 * diacritics) because they are looked up with plain words.
 */

/** Sets of words by language, from a list for each. */
const listWords = (lists: Readonly<Record<string, string>>): ReadonlyMap<string, ReadonlySet<string>> =>
  new Map(Object.entries(lists).map(([language, words]) => [language, new Set(words.trim().split(/\s+/))]));

/**
 * Words without content in a question, by language. The lists overlap with content words of other languages ("die", "son", "hat", "todo"),
 * so a question is matched against one list only: that of the language of most of its words.
 */
export const STOP_WORDS_BY_LANGUAGE = listWords({
  en: `a about above after again against all also am an and any are aren as at be because been before being below between both but
      by can cannot could couldn did didn do does doesn doing don down during each either else ever for from further had hadn has hasn
      have haven having he hence her here hers herself hi him himself his how however i if in into is isn it its itself just ll let lets
      may maybe me might mine more most much must mustn my myself neither no nor not now of off often oh ok okay on once only onto or
      other others ought our ours ourselves out over own perhaps please quite rather re really s shall she should shouldn since so some
      such t tell than that the their theirs them themselves then there these they this those though through thus to too toward towards
      under until up upon us ve very via was wasn we were weren what whatever when whenever where wherever whether which while who
      whoever whom whose why will with within without won would wouldn yes yet you your yours yourself yourselves m d`,
  de: `aber alle als am an auch auf aus bei bin bis da damit dann das dass dem den der des die dies diese dieser dieses doch dort du
      durch ein eine einem einen einer eines er es fur gegen hab habe haben hat hatte hier ich ihr im in ist ja kann kein keine man mein
      mich mir mit nach nicht noch nur oder ohne sein seine sich sie sind so uber um und uns unser von vor wann war warum was weil
      welche welcher welches wenn wer wie wir wird wo wurde zu zum zur`,
  fr: `a au aux avec c ce ces cet cette comme d dans de des du elle elles en est et etait etaient eu il ils j je l la le les leur leurs
      lui m ma mais me mes moi mon n ne nos notre nous on ou par pas pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa
      sans se ses si son sont sur t ta te tes toi ton tu un une vos votre vous y`,
  es: `a al como con cual cuando cuanto de del donde e el ella ellos en entre era es esa ese eso esta estan este esto fue ha han hay la
      las le lo los mas me mi mis muy nada no nos o para pero por porque que quien se ser si sin sobre su sus tambien te tiene toda
      todo tu un una uno y ya yo`,
  pt: `a ao aos as ate com como da das de dela dele depois do dos e ela ele eles em era essa esse esta este eu foi isso isto ja mais mas
      me meu minha muito na nao nas nem no nos num o onde os ou para pela pelo por porque qual quando que quem sao se sem ser seu sua
      tem um uma voce`,
  it: `a al alla anche che chi ci cio come con cosa cui da dal dalla degli dei del della delle di dove e era erano fra gli ha hanno ho i
      il in io la le lei li lo loro ma mi nei nel nella noi non o per perche piu quale quando quello questa questo se si sono sta su
      sul sulla tra tu un una`,
  nl: `aan als bij dan dat de deze die dit door een en er had heb heeft het hij hoe ik in is je kan maar me met mijn naar niet nog of om
      ons ook op over te toen u uit van voor waar waarom wanneer was wat we welke wie wij ze zij zijn zo zou`,
  ru: `а без был была были было быть в вам вас во вот все вы где да для до его ее если есть еще же за и из или им их к как какая какие
      какои кем когда которые кто куда ли мне мои мы на над наш не него нее нет ни но о об он она они оно от по под после почему при про
      с со так там те то тоже только тот ты у уже чем что чтобы эта эти это этот я`,
});

/**
 * Words about the form of the answer, not its subject: a format ("summary", "list", "order"), that something was said ("mentioned"), a sort
 * of answer ("kind", "many"), where to look ("conversations"). A message that contains one is hardly the answer.
 */
export const ASKING_WORDS_BY_LANGUAGE = listWords({
  en: `mention mentioned mentions say said says type types kind kinds sort many recently different various items item order summary
    summarize summarise comprehensive overview list throughout across conversations conversation sessions brought`,
  de: `erwahnt erwahnte gesagt sagte sagt art arten sorte viele kurzlich verschiedene reihenfolge zusammenfassung zusammenfassen fasse liste
    uberblick gesprach gesprache gesprachen`,
  fr: `mentionne mentionnee dit disait type types genre genres sorte combien recemment differents differentes ordre resume resumer liste
    ensemble conversation conversations`,
  es: `mencionado mencione menciono mencionaste dicho dije dijo tipo tipos clase cuantos cuantas recientemente diferentes distintos orden
    resumen resumir resume lista conversacion conversaciones`,
  pt: `mencionei mencionou mencionado disse dito tipo tipos quantos quantas recentemente diferentes ordem resumo resumir lista conversa
    conversas`,
  it: `menzionato detto disse tipo tipi genere quanti quante recentemente diversi diverse ordine riassunto riassumere lista elenco
    conversazione conversazioni`,
  nl: `genoemd gezegd zei soort soorten type veel onlangs verschillende volgorde samenvatting samenvatten lijst overzicht gesprek gesprekken`,
  ru: `упомянул упомянула сказал сказала вид тип сколько недавно разные порядок порядке резюме список разговор разговоры разговорах`,
});

/** Words that refer to the speaker. */
export const ASKER_WORDS_BY_LANGUAGE = listWords({
  en: "i my me mine myself",
  de: "ich mein meine meinem meinen meiner meines mich mir",
  fr: "je j mon ma mes me moi",
  es: "yo mi mis me",
  pt: "eu meu minha meus minhas me",
  it: "io mio mia miei mie mi",
  nl: "ik mijn mij me",
  ru: "я мои моя мое мне меня",
});

/**
 * Asks what the other side said or did, though it also names the asker ("what did you recommend for my trip?"). "Can you list …" does not.
 */
export const ASKS_OTHER =
  /\b(?:did|have|had|were|are|do|would|should) you\b|\b(?:hast|hattest|warst|bist) du\b|\b(?:as|avais)-tu\b|\bavez-vous\b|\b(?:heb|had) je\b/i;

/**
 * Single characters of Chinese and Japanese that are grammar, not content. They are skipped when a question's characters are
 * searched one by one; words that contain them are still searched as phrases.
 */
export const STOP_GLYPHS: ReadonlySet<string> = new Set(
  "的了是在我你他她它们這这那有和与及或就都也很吗呢吧啊呀嘛么之其而于以为被把从到对个么什请问谁哪几多少怎样些么の に は を が と も で へ や か ね よ た て し い る れ さ な だ ま す ん う く っ 은 는 이 가 을 를 의 에 도 로"
    .replaceAll(" ", "")
    .split(""),
);

/** Characters that appear only, or nearly only, in questions. */
export const QUESTION_GLYPHS: ReadonlySet<string> = new Set("吗呢谁誰哪哪什几怎何".split(""));

/** Irregular English forms and the word they are a form of: `base form form …`. */
const IRREGULAR_FAMILIES = `
be is are am was were been being
have has had having
do does did done doing
go goes went gone
say said
get got gotten
make made
know knew known
think thought
take took taken
see saw seen
come came
find found
give gave given
tell told
feel felt
leave left
mean meant
keep kept
begin began begun
show shown
hear heard
run ran
hold held
bring brought
write wrote written
sit sat
stand stood
lose lost
pay paid
meet met
speak spoke spoken
lead led
grow grew grown
win won
teach taught
buy bought
send sent
build built
fall fell fallen
catch caught
draw drew drawn
choose chose chosen
break broke broken
drive drove driven
rise rose risen
wear wore worn
fly flew flown
eat ate eaten
sing sang sung
swim swam swum
sleep slept
spend spent
ride rode ridden
fight fought
throw threw thrown
forget forgot forgotten
sell sold
understand understood
become became
wake woke woken
steal stole stolen
freeze froze frozen
hide hid hidden
bite bit bitten
blow blew blown
drink drank drunk
ring rang rung
shake shook shaken
shoot shot
sink sank sunk
stick stuck
strike struck
swear swore sworn
sweep swept
tear tore torn
bind bound
feed fed
lend lent
light lit
lay laid
deal dealt
dream dreamt
learn learnt
burn burnt
seek sought
shine shone
slide slid
spin spun
dig dug
hang hung
bend bent
bleed bled
breed bred
flee fled
forgive forgave forgiven
overcome overcame
undo undone undid
redo redid redone
rebuild rebuilt
resend resent
rewrite rewrote rewritten
withdraw withdrew withdrawn
child children
person people
man men
woman women
foot feet
tooth teeth
goose geese
mouse mice
life lives
wife wives
knife knives
leaf leaves
half halves
shelf shelves
wolf wolves
index indices indexes
matrix matrices
vertex vertices
analysis analyses
crisis crises
basis bases
criterion criteria
phenomenon phenomena
good better best
bad worse worst
far further farther
die dying died dies
lie lying lied lies
tie tying tied ties
news
series
species
`;

/** Irregular form → base. Bases map to themselves, so that they are not shortened by a suffix rule. */
export const IRREGULAR_FORMS: ReadonlyMap<string, string> = new Map(
  IRREGULAR_FAMILIES.trim()
    .split("\n")
    .flatMap((line) => {
      const forms = line.split(" ");
      return forms.map((form): [string, string] => [form, forms[0] as string]);
    }),
);
