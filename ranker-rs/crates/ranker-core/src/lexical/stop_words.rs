//! The words of each language that nearly every text has: articles, pronouns, auxiliaries,
//! prepositions, question words. They tell the language and aren't indexed.
//!
//! Words that carry a subject stay out of the lists, however common they are.

use super::language::Language;

/// Lower-case, separated by blanks, with the accents that they are written with.
pub(super) const STOP_WORDS: &[(Language, &str)] = &[
    (
        Language::English,
        "a an the and or but nor so if then than as at by for from in into of off on onto out over \
         to up with about between during through i me my mine we us our ours you your yours he \
         him his she her hers it its they them their theirs this that these those who whom whose \
         which what when where why how is am are was were be been being do does did doing done \
         have has had having will would shall should can could may might must not no yes there \
         here also just very too i'm i've i'd i'll you're you've you'd you'll he's she's it's \
         we're we've we'd we'll they're they've they'd they'll that's there's what's who's let's \
         don't doesn't didn't isn't aren't wasn't weren't haven't hasn't hadn't won't wouldn't \
         can't couldn't shouldn't",
    ),
    (
        Language::German,
        "der die das den dem des ein eine einen einem einer eines kein keine keinen und oder aber \
         denn weil dass wenn als ob wie so an am auf aus bei beim bis durch für gegen in im ins \
         mit nach ohne über um unter von vom vor zu zum zur zwischen ich mich mir mein meine \
         meinen meinem meiner du dich dir dein deine er ihn ihm sein seine seinen sie ihr ihre \
         ihren es wir uns unser unsere euch man sich dieser diese dieses diesen wer was wann wo \
         warum welche welcher ist bin bist sind war waren wird werden wurde wurden hat habe haben \
         hatte hatten kann können muss soll nicht auch nur noch schon sehr hier da dort",
    ),
    (
        Language::French,
        "le la les un une des du de au aux et ou mais donc or ni car si que qu qui quoi dont \
         où quand comment pourquoi quel quelle quels quelles à dans par pour en vers avec sans \
         sous sur entre chez je me moi mon ma mes tu te toi ton ta tes il elle on nous notre \
         nos vous votre vos ils elles eux leur leurs lui se son sa ses ce cet cette ces cela ça \
         est suis es sommes êtes sont était étaient été être ai as a avons avez ont avait avoir ne \
         pas plus aussi très y",
    ),
    (
        Language::Spanish,
        "el la los las un una unos unas y e o u pero si que como cuando donde porque por para con \
         sin sobre entre de del al a en desde hasta yo me mi mis mí tú te tu tus él ella ello le \
         les lo nos nosotros nuestro nuestra vosotros ellos ellas se su sus usted ustedes este \
         esta estos estas ese esa esos esas eso esto quién quien qué cuál cuándo cómo dónde es soy \
         eres somos son era eran fue fueron ser sido está están estaba estoy he ha has han había \
         hay no sí ya muy más también",
    ),
    (
        Language::Portuguese,
        "o a os as um uma uns umas e ou mas se que como quando onde porque por para com sem sobre \
         entre de do da dos das ao aos à às em no na nos nas num numa pelo pela pelos pelas até eu \
         me mim meu minha meus minhas tu te ti teu tua você vocês ele ela eles elas lhe nós nosso \
         nossa se seu sua seus suas este esta estes estas esse essa esses essas isto isso aquele \
         aquela quem qual quais é sou és somos são era eram foi foram ser sido está estão estava \
         estou tem têm tenho tinha há não sim já muito mais também",
    ),
    (
        Language::Italian,
        "il lo la i gli le un uno una e ed o ma se che come quando dove perché per con senza su \
         tra fra di del dello della dei degli delle a al allo alla ai agli alle da dal dalla dai \
         in nel nello nella nei negli nelle sul sulla sui io mi me mio mia miei mie tu ti te tuo \
         tua lui lei gli ne noi ci nostro nostra voi vi vostro loro si suo sua suoi sue questo \
         questa questi queste quello quella quelli chi cosa quale è sono sei siamo siete era erano \
         stato essere ho hai ha abbiamo hanno aveva non sì già molto più anche",
    ),
    (
        Language::Dutch,
        "de het een en of maar want als dan dat die dit deze zo aan op in uit bij door voor van \
         naar met zonder over onder tussen tot om te er ik me mij mijn je jij jou jouw hij hem \
         zijn haar zij ze het we wij ons onze jullie hun hen zich wie wat wanneer waar waarom hoe \
         welke is ben bent was waren wordt worden werd werden heb hebt heeft hebben had hadden kan \
         kunnen moet zal zou niet geen ook nog al wel zeer hier daar",
    ),
    (
        Language::Swedish,
        "den det de en ett och eller men om att som när där så på i av för från till med utan över \
         under mellan vid jag mig min mitt mina du dig din ditt dina han honom hans hon henne \
         hennes vi oss vår vårt våra ni er sig sin sitt sina dem deras denna detta dessa vem vad \
         vilken varför hur är var varit vara blir blev har hade kan ska skulle måste inte ingen \
         också mycket här",
    ),
    (
        Language::Danish,
        "den det de en et og eller men om at som når hvor så på i af for fra til med uden over \
         under mellem ved jeg mig min mit mine du dig din dit dine han ham hans hun hende hendes \
         vi os vores jer sig sin sit sine dem deres denne dette disse hvem hvad hvilken hvorfor \
         hvordan er var været være bliver blev har havde kan skal skulle må ikke ingen også meget \
         her der",
    ),
    (
        Language::Norwegian,
        "den det de en ei et og eller men om at som når hvor så på i av for fra til med uten over \
         under mellom ved jeg meg min mitt mine du deg din ditt dine han ham hans hun henne hennes \
         vi oss vår vårt våre dere seg sin sitt sine dem deres denne dette disse hvem hva hvilken \
         hvorfor hvordan er var vært være blir ble har hadde kan skal skulle må ikke ingen også \
         veldig her der",
    ),
    (
        Language::Finnish,
        "ja tai mutta jos että kun koska kuin niin myös vain jo vielä ei en et emme ette eivät on \
         olen olet olemme olette ovat oli olin olivat ollut olla minä minun minut minua minulla \
         sinä sinun hän hänen hänet se sen sitä siitä siinä sille me meidän te teidän he heidän ne \
         niiden tämä tämän tätä nämä tuo tuon mikä mitä missä milloin miksi miten kuka kenen joka \
         jonka jota jotka",
    ),
    (
        Language::Polish,
        "i oraz lub ale a że żeby jeśli gdy kiedy jak bo więc w we na z ze do od o u po przed przy \
         przez dla pod nad między bez ja mnie mi mną mój moja moje ty ciebie ci cię twój twoja on \
         jego go jemu mu nim ona jej ją ono my nas nam nasz wy was wam oni ich im się siebie swój \
         ten ta to te tego tej tym tych który która które kto co gdzie dlaczego jaki jest jestem \
         jesteś są był była było byli być będzie ma mam mają nie tak też już bardzo tu tam",
    ),
    (
        Language::Czech,
        "a i nebo ale že aby když jestli jak protože tak v ve na z ze do od o u po před při přes \
         pro pod nad mezi bez s se si já mě mi mně můj moje ty tě ti tvůj on jeho ho mu něm ona \
         její ji ono my nás nám náš vy vás vám oni jejich jim svůj ten ta to ti tyto toho tomu \
         který která které kdo co kde kdy proč jaký je jsem jsi jsou jsme byl byla bylo byli být \
         bude má mám mají ne už také velmi tady tam",
    ),
    (
        Language::Romanian,
        "un o unui unei niște și sau dar dacă că să ca cum când unde pentru cu fără pe în din la \
         de despre între prin până al a ai ale eu mă mie îmi meu mea mei mele tu te ție îți tău ta \
         el lui îi ea ei noi ne nostru voi vă vostru ele lor se își său sa acest această aceste \
         acel acea care cine ce când cât este e sunt ești suntem era erau fost fi am are au avea \
         aveam nu da mai foarte și aici",
    ),
    (
        Language::Hungarian,
        "a az egy és vagy de ha hogy mint mert amikor ahol így úgy is meg csak már még nem ne igen \
         van vagyok vagy vagyunk vannak volt voltam voltak lesz lenne én engem nekem te téged \
         neked ő őt neki mi minket nekünk ti ők őket nekik ez ezt ennek az azt annak aki ami ki mit \
         mikor hol miért hogyan melyik nagyon itt ott",
    ),
    (
        Language::Turkish,
        "ve veya ama fakat eğer ki gibi için ile bir bu şu o ben beni bana benim sen seni sana \
         senin onu ona onun biz bizi bize bizim siz sizi size sizin onlar onları onların kim ne \
         zaman nerede neden niçin nasıl hangi mi mı mu mü de da değil var yok çok daha en olan \
         olarak oldu olur idi ise",
    ),
    (
        Language::Russian,
        "и а но или да если что чтобы как когда где потому так же в во на с со из к ко у о об от до \
         по за для при без над под между через перед я меня мне мной мой моя моё мои ты тебя тебе \
         твой твоя он его ему им нём она её ей ней оно мы нас нам наш наша вы вас вам ваш они их \
         ними себя себе свой своя этот эта это эти этого этой тот та то те того который которая \
         которые кто чего чём почему какой какая быть был была было были есть будет не ни нет бы \
         ли уже ещё тоже также очень здесь там",
    ),
    (
        Language::Ukrainian,
        "і й та а але або якщо що щоб як коли де бо так же в у на з із зі до від о об по за для при \
         без над під між через перед я мене мені мій моя моє мої ти тебе тобі твій він його йому \
         ним вона її їй воно ми нас нам наш ви вас вам ваш вони їх їм себе собі свій своя цей ця це \
         ці цього той ті того який яка які хто чого чому бути був була було були є буде не ні немає \
         б би чи вже ще теж також дуже тут там",
    ),
    (
        Language::Greek,
        "ο η το οι τα του της των τον την τους τις ένας ένα μια μία και ή αλλά αν ότι πως που όταν \
         πού γιατί σε στο στη στην στον στα στις στους από με για χωρίς μέχρι εγώ με μου μας εσύ \
         σε σου σας αυτός αυτή αυτό αυτοί αυτές αυτά τι ποιος ποια ποιο πότε πώς είναι είμαι είσαι \
         ήταν ήμουν έχω έχει έχουν είχε θα να δεν μη μην ναι όχι και πολύ επίσης εδώ εκεί",
    ),
];
