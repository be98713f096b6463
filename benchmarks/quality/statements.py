"""Old and updated statements of one thing, and statements that only look like it.

Everything is built from templates over topics, so that each pair is two sentences which nobody
would compare by their words alone: they are worded differently, the value changes, and between
them lies most of a year. Topics of an even number are for tuning, those of an odd number for the
report: neither shares a template with the other.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Topic:
    """One thing that changes.

    Attributes:
        stated: Ways to say it, with ``{}`` for the value.
        updated: Ways to say that it is otherwise now; ``{old}`` may be named.
        asked: Ways to ask for it, naming no value.
        values: What it may be.
    """

    stated: tuple[str, ...]
    updated: tuple[str, ...]
    asked: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """Two statements, the older first, and a question that both seem to answer.

    ``same``: the newer one is an update of the older. Otherwise the question is about the older
    one alone.
    """

    topic: int
    older: str
    newer: str
    question: str
    same: bool


TOPICS: Final = (
    Topic(
        ("I live in {}.", "My flat is in {}.", "Home is {} for me."),
        ("We moved, I live in {} now.", "I have moved to {}.", "My new flat is in {}."),
        ("Where does she live?", "Which city is home?"),
        ("Berlin", "Lisbon", "Porto", "Oslo", "Kraków", "Lyon", "Ghent", "Turin"),
    ),
    Topic(
        ("The customer is on the {} plan.", "Their subscription is the {} plan."),
        (
            "The customer switched to the {} plan.",
            "They upgraded their subscription, it is the {} plan now.",
        ),
        ("Which plan is the customer on?", "What subscription plan do they have?"),
        ("Free", "Pro", "Team", "Starter", "Business", "Enterprise", "Solo", "Basic"),
    ),
    Topic(
        ("I work at {} as a data engineer.", "My employer is {}."),
        ("I started a new job, my employer is {}.", "I left {old} and work at {} now."),
        ("Where does she work?", "Who is her employer?"),
        ("Initech", "Globex", "Hooli", "Umbra", "Nordwind", "Acme", "Vandelay", "Contoso"),
    ),
    Topic(
        ("My phone number is {}.", "You can call me on the phone number {}."),
        (
            "I have a new phone number, it is {}.",
            "Please call me on {} from now on, my phone number changed.",
        ),
        ("What is her phone number?", "Which number do I call to reach her by phone?"),
        ("555-0101", "555-0144", "555-0187", "555-0129", "555-0163", "555-0118", "555-0172"),
    ),
    Topic(
        ("I follow a {} diet.", "My diet is {}."),
        ("I changed my diet, it is {} these days.", "My doctor put me on a {} diet."),
        ("What diet does she follow?", "What should I know about her diet?"),
        ("vegetarian", "vegan", "ketogenic", "gluten-free", "low-salt", "pescatarian"),
    ),
    Topic(
        ("I drive a {}.", "My car is a {}."),
        ("I sold the old car and drive a {} now.", "My new car is a {}."),
        ("What car does she drive?", "Which car is hers?"),
        ("Skoda", "Volvo", "Fiat", "Tesla", "Renault", "Toyota", "Mazda"),
    ),
    Topic(
        ("I go to the gym at {}.", "My gym session starts at {}."),
        ("My gym session was moved, it starts at {}.", "I go to the gym at {} nowadays."),
        ("When does she go to the gym?", "At what time is the gym session?"),
        ("6 am", "7 pm", "noon", "8:30 pm", "5 pm", "9 am"),
    ),
    Topic(
        ("My dentist is Dr. {}.", "I see Dr. {} as my dentist."),
        ("I changed dentist, I see Dr. {} now.", "My new dentist is Dr. {}."),
        ("Who is her dentist?", "Which dentist does she see?"),
        ("Okafor", "Lindqvist", "Moreau", "Tanaka", "Novak", "Reyes"),
    ),
    Topic(
        ("The report is due on {}.", "We have to deliver the report by {}."),
        ("The deadline of the report moved to {}.", "The report is due on {} instead."),
        ("When is the report due?", "What is the deadline of the report?"),
        ("12 March", "3 April", "28 May", "9 June", "17 July", "30 September"),
    ),
    Topic(
        ("The budget for the kitchen is {} euros.", "We set {} euros aside for the kitchen."),
        (
            "We raised the budget for the kitchen to {} euros.",
            "The kitchen will cost more, the budget is {} euros.",
        ),
        ("What is the budget for the kitchen?", "How much money is set aside for the kitchen?"),
        ("8,000", "12,500", "9,300", "15,000", "11,200", "20,000"),
    ),
    Topic(
        ("Our team has {} engineers.", "There are {} engineers on our team."),
        (
            "After the hiring round our team has {} engineers.",
            "People left, so there are {} engineers on the team.",
        ),
        ("How many engineers are on the team?", "How big is the team?"),
        ("4", "7", "9", "12", "15", "21"),
    ),
    Topic(
        ("I take my coffee {}.", "I like my coffee {}."),
        ("I take my coffee {} these days.", "My taste changed, I like my coffee {}."),
        ("How does she take her coffee?", "What coffee should I order for her?"),
        ("black", "with oat milk", "with sugar", "as an espresso", "iced", "with cream"),
    ),
    Topic(
        ("I commute by {}.", "I get to the office by {}."),
        ("I commute by {} since the spring.", "I gave up on the {old} and commute by {}."),
        ("How does she commute?", "How does she get to the office?"),
        ("train", "bike", "tram", "bus", "ferry", "scooter"),
    ),
    Topic(
        ("I write code on a {} laptop.", "My work laptop is a {}."),
        ("IT replaced my work laptop, it is a {}.", "My new laptop for work is a {}."),
        ("Which laptop does she use for work?", "What is her work laptop?"),
        ("ThinkPad", "MacBook", "Framework", "Latitude", "Zenbook", "EliteBook"),
    ),
    Topic(
        ("Our standup is at {}.", "We hold the daily standup at {}."),
        ("The standup was moved to {}.", "From next week the daily standup is at {}."),
        ("When is the standup?", "At what time do they hold the daily standup?"),
        ("9:00", "9:30", "10:15", "11:00", "14:00", "16:30"),
    ),
    Topic(
        ("My daughter goes to the {} school.", "Lena's school is the {} school."),
        (
            "My daughter changed schools and goes to the {} school.",
            "Since the summer my daughter's school is the {} school.",
        ),
        ("Which school does her daughter go to?", "What is the daughter's school?"),
        ("Montessori", "Riverside", "Saint Mary", "Waldorf", "Hillcrest", "Parkview"),
    ),
    Topic(
        ("I am reading {} at the moment.", "The book on my desk is {}."),
        ("I finished it and am reading {} at the moment.", "My current book is {}."),
        ("What book is she reading?", "What is she reading at the moment?"),
        ("Middlemarch", "Dune", "Ulysses", "Solaris", "Beloved", "Emma"),
    ),
    Topic(
        ("My emergency contact is {}.", "In an emergency please call {}."),
        (
            "Please change my emergency contact to {}.",
            "In an emergency call {} instead, my emergency contact changed.",
        ),
        ("Who is her emergency contact?", "Whom should we call in an emergency?"),
        ("Tom", "Irene", "Pavel", "Yuki", "Marta", "Samir"),
    ),
    Topic(
        ("I am learning {}.", "I take {} lessons every Tuesday."),
        ("I dropped {old} and am learning {} now.", "I take lessons in {} these days."),
        ("Which language is she learning?", "What lessons does she take?"),
        ("Spanish", "Czech", "Japanese", "Arabic", "Finnish", "Welsh"),
    ),
    Topic(
        ("The retro takes place in room {}.", "We meet for the retro in room {}."),
        ("The retro was moved to room {}.", "We meet in room {} for the retro from now on."),
        ("In which room is the retro?", "Where do we meet for the retro?"),
        ("Ada", "Turing", "Hopper", "Gauss", "Noether", "Euler"),
    ),
    Topic(
        ("Production runs version {}.", "The version in production is {}."),
        ("We deployed, production runs version {}.", "Production was upgraded to version {}."),
        ("Which version runs in production?", "What version is in production?"),
        ("2.3", "2.4", "3.0", "3.1", "4.2", "5.0"),
    ),
    Topic(
        ("The service stores its data in {}.", "Our database is {}."),
        ("We migrated the database to {}.", "The service stores its data in {} as of this month."),
        ("Which database does the service use?", "Where does the service store its data?"),
        ("Postgres", "MySQL", "SQLite", "Cassandra", "MongoDB", "CockroachDB"),
    ),
    Topic(
        ("I sleep {} hours a night.", "I get {} hours of sleep."),
        ("With the baby I get {} hours of sleep.", "I sleep {} hours a night these days."),
        ("How much does she sleep?", "How many hours of sleep does she get?"),
        ("8", "7", "6", "5", "9", "4"),
    ),
    Topic(
        ("We will spend the holidays in {}.", "Our holiday this year is in {}."),
        ("Change of plans, we will spend the holidays in {}.", "Our holiday is in {} after all."),
        ("Where will they spend the holidays?", "Where is their holiday this year?"),
        ("Crete", "Iceland", "Madeira", "Sicily", "Norway", "Morocco"),
    ),
    Topic(
        ("My manager is {}.", "I report to {}, who is my manager."),
        ("After the reorganisation my manager is {}.", "I report to a new manager, {}."),
        ("Who is her manager?", "To whom does she report?"),
        ("Priya", "Olga", "Ben", "Chen", "Fatima", "Jonas"),
    ),
    Topic(
        ("I am in the {} time zone.", "My time zone is {}."),
        ("I am in the {} time zone while I travel.", "My time zone changed to {}."),
        ("Which time zone is she in?", "What is her time zone?"),
        ("CET", "PST", "EST", "JST", "GMT", "IST"),
    ),
    Topic(
        ("I pay {} euros of rent.", "My rent is {} euros a month."),
        ("The landlord raised my rent to {} euros.", "From May on I pay {} euros of rent."),
        ("How much rent does she pay?", "What is her monthly rent?"),
        ("850", "920", "1,050", "1,200", "780", "990"),
    ),
    Topic(
        ("Please deliver my parcels to {}.", "My delivery address is {}."),
        ("Please deliver my parcels to {} from now on.", "I have a new delivery address: {}."),
        ("Where should parcels be delivered?", "What is her delivery address?"),
        ("12 Elm Street", "4 Mill Lane", "77 Harbour Road", "9 Abbey Court", "31 Oak Drive"),
    ),
    Topic(
        ("I bank with {}.", "My bank is {}."),
        ("I closed that account and bank with {} now.", "My new bank is {}."),
        ("Which bank does she use?", "Where does she bank?"),
        ("Monzo", "Santander", "Revolut", "Barclays", "ING", "Nordea"),
    ),
    Topic(
        ("I run {} kilometres a week.", "My weekly running distance is {} kilometres."),
        (
            "My knee is better, I run {} kilometres a week.",
            "I cut my weekly running distance to {} kilometres.",
        ),
        ("How many kilometres does she run a week?", "What is her weekly running distance?"),
        ("10", "20", "35", "50", "15", "42"),
    ),
)

# (statement, question, things, values): the same is said of two different things.
LOOKALIKES: Final = (
    (
        "{thing}'s birthday is on {}.",
        "When is {thing}'s birthday?",
        ("Anna", "Ben", "Carla", "David", "Elif", "Farid"),
        ("4 May", "9 June", "21 March", "2 October"),
    ),
    (
        "The {thing} project ends in {}.",
        "When does the {thing} project end?",
        ("Apollo", "Zeus", "Hermes", "Athena", "Juno"),
        ("spring", "December", "August", "June"),
    ),
    (
        "My {thing} is allergic to {}.",
        "What is her {thing} allergic to?",
        ("son", "father", "cousin", "neighbour", "sister"),
        ("nuts", "pollen", "penicillin", "shellfish"),
    ),
    (
        "The {thing} server has {} GB of memory.",
        "How much memory does the {thing} server have?",
        ("staging", "build", "mail", "search", "billing"),
        ("16", "32", "64", "128"),
    ),
    (
        "The {thing} meeting is on {}.",
        "When is the {thing} meeting?",
        ("budget", "design", "hiring", "security", "sales"),
        ("Monday", "Tuesday", "Wednesday", "Friday"),
    ),
    (
        "{thing} likes {} for lunch.",
        "What does {thing} like for lunch?",
        ("Greta", "Hugo", "Ines", "Karl", "Lucia"),
        ("soup", "sushi", "salad", "lasagne"),
    ),
    (
        "The key of the {thing} is with {}.",
        "Who has the key of the {thing}?",
        ("cellar", "garage", "attic", "shed", "office"),
        ("Mona", "Nils", "Otto", "Petra"),
    ),
    (
        "We paid {} euros for the {thing}.",
        "How much did they pay for the {thing}?",
        ("sofa", "fridge", "carpet", "lamp", "piano"),
        ("120", "450", "900", "2,300"),
    ),
)

NOISE: Final = (
    "We watched the football match with the neighbours.",
    "It rained all weekend and the cellar got wet.",
    "Please remember that I prefer short answers.",
    "The children built a treehouse in the garden.",
    "I could not find my glasses this morning.",
    "The concert on Saturday was sold out.",
    "Mum sent a postcard from the mountains.",
    "The printer on the second floor is jammed again.",
    "I am thinking about painting the hallway yellow.",
    "Our neighbour's cat had five kittens.",
    "The new bakery around the corner is excellent.",
    "I fixed the leaking tap myself.",
    "The elevator was out of order on Thursday.",
    "She recommended a podcast about volcanoes.",
    "I lost a bet about the election.",
    "The museum is free on the first Sunday.",
)


def pairs(seed: int, *, odd: bool, of_each_topic: int = 8) -> list[Pair]:
    """Return old and updated statements, and lookalikes, of one half of the topics."""
    chance = random.Random(seed)
    made = []
    for number, topic in enumerate(TOPICS):
        if number % 2 != odd:
            continue
        for _ in range(of_each_topic):
            old, new = chance.sample(topic.values, 2)
            older = chance.choice(topic.stated).format(old)
            newer = chance.choice(topic.updated).format(new, old=old)
            made.append(Pair(number, older, newer, chance.choice(topic.asked), same=True))
    for number, (said, asked, things, values) in enumerate(LOOKALIKES):
        if number % 2 != odd:
            continue
        for _ in range(2 * of_each_topic):
            one, other = chance.sample(things, 2)
            first, second = chance.sample(values, 2)
            made.append(
                Pair(
                    len(TOPICS) + number,
                    said.format(first, thing=one),
                    said.format(second, thing=other),
                    asked.format(thing=one),
                    same=False,
                )
            )
    return made
