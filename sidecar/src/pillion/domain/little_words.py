"""Words that say little of what a statement is about, in the languages most memories are in.

Words of one and two letters are passed over by their length; these are longer.
"""

from __future__ import annotations

from typing import Final

_ENGLISH: Final = """
the and for are was were been being does did done has have had having will would can could should
shall may might must with from into onto about over under but then than here there who whom what
which when where why how not nor our ours your yours his him her hers she they them their its this
that these those you any some all each every very just please also out off too per let get got goes
went say says said
"""
_GERMAN: Final = """
der die das den dem des ein eine einen einem einer und oder aber ist sind war waren bin bist hat
habe haben hatte wird werden mit von vom für auf aus bei nach zum zur ich wir ihr sie mein meine
unser unsere sein seine ihre nicht kein keine auch nur noch schon wie was wer wann als dass
"""
_FRENCH: Final = """
les des une est sont était ont avec pour par dans sur mon mes ton nos vos ses leur que qui quoi
quand nous vous ils elle elles mais pas plus aux
"""
_SPANISH_PORTUGUESE_ITALIAN: Final = """
los las una uno unos con por para del que como cuando donde pero mis sus nuestro nuestra está están
estoy era eran soy somos muy más uma dos das nos nas com meu minha seu sua nosso nossa não mais ele
ela eles foi são estou gli che della dello nel nella sono mio mia suo non
"""
_RUSSIAN: Final = """
это как что его мой моя моё мои наш наша она они оно для при над под без или был была было были
есть меня мне нас вас ему ней них
"""  # noqa: RUF001  Russian is written in Cyrillic

LITTLE: Final = frozenset(
    f"{_ENGLISH} {_GERMAN} {_FRENCH} {_SPANISH_PORTUGUESE_ITALIAN} {_RUSSIAN}".split()
)

_OF_CHANGE: Final = """
now new newly moved move changed change switched switch instead anymore longer current currently
nowadays days since today latest updated update upgraded replaced replace next ago after before
onwards until still started left dropped again recently lately actually
jetzt neu neue neuen nun seit mehr heute umgezogen gewechselt geändert
maintenant nouveau nouvelle désormais depuis changé déménagé
ahora nuevo nueva desde cambié mudé agora novo nova mudei adesso nuovo nuova
теперь сейчас новый новая новое переехал переехала больше
"""
# They say that something is otherwise now, and not what it is.
CHANGE: Final = frozenset(_OF_CHANGE.split())
