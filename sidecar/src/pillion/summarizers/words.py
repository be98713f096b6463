# ruff: noqa: E501, RUF001, SIM905
# Words of many languages, as tables that a person can read and extend.
"""Tables of words, case-folded: abbreviations, negations, and words that open sentences."""

from __future__ import annotations

ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof sr jr st vs etc eg ie e.g i.e fig no vol approx dept est inc ltd co corp gen
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
    z.b d.h u.a bzw ca nr str usw evtl ggf hr fr
    т.е т.к т.д т.п и.о г ул им стр см руб тыс
    sra dra av pág núm p.ej m mme mlle p.ex
    """.split()
)
"""After these a full stop does not end a sentence; without their last full stop."""

NEGATIONS = frozenset(
    """
    not no never none nobody nothing neither nor without cannot can't don't doesn't didn't isn't
    aren't wasn't weren't won't wouldn't shouldn't couldn't haven't hasn't hadn't
    nicht kein keine keinen nie niemals ohne ne pas jamais sans no nunca sin não nunca sem
    не нет ни никогда без 不 没 無 无 未 非
    """.split()
)
"""They turn a sentence into another one that looks nearly the same."""

COMMON_OPENERS = frozenset(
    """
    a an the this that these those there here it its i i'm i've i'd i'll you he she we they my your
    his her our their me us them who what when where why how which whose and but or so if then than
    because while although though after before since until unless as at by for from in into of off on
    onto out over to up with without about around between during under again also always never often
    sometimes usually just only even still yet already now today yesterday tomorrow tonight soon later
    maybe perhaps please thanks thank yes yeah no not nope ok okay hey hi hello bye wow oh well sure
    great good nice cool sorry right is are was were be been am do does did don't didn't doesn't can
    can't could couldn't will won't would wouldn't should shouldn't may might must have has had
    haven't let let's it's that's there's he's she's we're they're you're we've they've what's
    some any all both each every either neither none most more many much few several other another
    one two three first last next once meanwhile however therefore otherwise instead finally
    der die das ein eine ich du er sie es wir ihr und aber oder wenn weil dass nicht ja nein heute
    morgen gestern le la les un une je tu il elle nous vous ils elles et mais ou si oui non el los las
    uno una yo él ella nosotros ellos y pero o sí ayer hoy mañana o os as um uma eu ele ela nós eles e
    mas ou sim não я ты он она оно мы вы они и а но или если что это да нет не в на с по у к от для
    сегодня завтра вчера
    """.split()
)
"""At the head of a sentence their capital letter does not make them a name."""
