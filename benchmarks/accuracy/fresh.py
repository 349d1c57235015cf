"""The fresh tables of the benchmark, a few lines each; `tables.py` explains the columns.

They were added on 2026-11-18, and no learner was designed on them: they are looked at only to
report. They were chosen for their kind and size, before any method ran on them: panels, schools,
ratings, prices, salaries, growth, biology, medicine, sensors; 10 to 4,300 tasks; none to 21 side
columns; skewed, heavy-tailed, bent and drifting targets; some with next to nothing to learn. None
shares rows with a table of `registry.py` or with the first twelve data sets.
"""

# fmt: off
from __future__ import annotations

from benchmarks.accuracy.tables import Table

UP_TO_3, UP_TO_5 = (0, 1, 3), (0, 1, 3, 5)

NUMBERS: dict[str, Table] = {
    # Panels: countries, states, districts, firms.
    "terrorism": Table(
        "Countries: number of terrorist attacks in a year by year and its square; no side",
        "Ecdat/incidents.byCountryYr", "country_txt", "Freq", "iyear iyear^2",
        train=130, test=70),
    "migrants": Table(
        "Areas: log migrants to and from the United States by direction and year; no side",
        "stevedata/usa_migration", "area", "log1p(count)", "category=Inbound year",
        train=150, test=75, points=UP_TO_5),
    "births": Table(
        "States: number of births on a day by weekday, month, its square and year; no side",
        "mosaicData/Birthdays", "state", "births", "wday=* month month^2 year",
        train=34, test=17),
    "gonorrhoea": Table(
        "States: log gonorrhoea rate of a group by age, race, sex, year and economy; early repeal",
        "causaldata/abortion", "fip", "lnr",
        "age=* wht male year ir crack alcohol income ur poverty acc", "repeal",
        train=34, test=17),
    "congress": Table(
        "Districts: liberal voting of a member by year, party and share of the vote; no side",
        "causaldata/close_elections_lmb", "state district", "score",
        "year demvoteshare democrat lagdemocrat lagdemvoteshare", train=300, test=150),
    "companies": Table(
        "Industries: market value of a company by sales, profits and assets; no side information",
        "HSAUR/Forbes2000", "category", "marketvalue", "sales profits assets",
        train=18, test=9),
    # Salaries, loans, prices.
    "ball-salaries": Table(
        "Teams: salary of a baseball player by field position; no side information",
        "openintro/mlb", "team", "salary", "position=*", train=20, test=10),
    "loans": Table(
        "States: interest rate of a loan by 18 columns of the borrower and the loan; no side",
        "openintro/loans_full_schema", "state", "interest_rate",
        "log(annual_income) debt_to_income homeownership=* verified_income=* delinq_2y "
        "inquiries_last_12m total_credit_lines log1p(total_credit_limit) "
        "log1p(total_credit_utilized) accounts_opened_24m num_mort_accounts "
        "account_never_delinq_percent public_record_bankrupt log(loan_amount) term=60 "
        "application_type=joint", train=33, test=17),
    "computers": Table(
        "Months: price of a computer by speed, disk, memory, screen and kit; month, its adverts",
        "Ecdat/Computers", "trend", "price", "speed hd ram screen cd=yes multi=yes premium=yes",
        "trend ads", train=23, test=12),
    "cars": Table(
        "Makes: miles per gallon by engine, gears, drive and fuel; no side information",
        "openintro/epa2021", "division", "comb_mpg",
        "engine_displacement no_cylinders no_gears drive_sys=* fuel_usage=G",
        train=24, test=14, points=UP_TO_5),
    # Schools and ratings.
    "gcse": Table(
        "Schools: course work in science by written paper and sex; mean written paper, share girls",
        "mlmRev/Gcsemv", "school", "course", "written gender=F", "mean(written) mean(gender=F)",
        train=45, test=24),
    "scots": Table(
        "Primary schools: score at 16 by verbal reasoning, sex and class; mean verbal and class",
        "mlmRev/ScotsSec", "primary", "attain", "verbal sex=F social", "mean(verbal) mean(social)",
        train=80, test=45),
    "fries": Table(
        "Tasters: rancid flavour of fries by week, oil and replicate; no side information",
        "reshape2/french_fries", "subject", "rancid", "time treatment=* rep", train=8, test=4),
    "patient-ratings": Table(
        "Clinics: rating by patients by kind of question; no side information",
        "tidyr/cms_patient_experience", "org_pac_id", "prf_rate", "measure_cd=*",
        train=54, test=30, points=UP_TO_3),
    # Growth, biology, medicine.
    "health-expenses": Table(
        "People: medical expenses in a year by age and year; 21 columns of person and insurance",
        "sampleSelection/RandHIE", "zper", "meddol", "xage year",
        "site=* tookphys black female educdec linc mhi disea physlm hlthg hlthf hlthp logc idp "
        "lpi fmde mean(child)", train=4000, test=300, points=UP_TO_3),
    "pigs": Table(
        "Pigs: weight by week, its square and feed; weight at the start, vitamin E, copper",
        "geepack/dietox", "Pig", "Weight", "Time Time^2 Feed", "Start Evit=* Cu=*",
        train=48, test=24, points=UP_TO_5),
    "rat-pups": Table(
        "Litters: weight of a rat pup by sex; size of the litter, treatment",
        "nlme/RatPupWeight", "Litter", "weight", "sex=Male", "Lsize Treatment=*",
        train=17, test=9, points=UP_TO_5),
    "theophylline": Table(
        "People: concentration of a drug by time, its square and logarithm; weight, dose",
        "datasets/Theoph", "Subject", "conc", "Time Time^2 log1p(Time)", "Wt Dose",
        train=8, test=4, points=UP_TO_5),
    "mares": Table(
        "Mares: number of follicles by time in the cycle and its square; no side information",
        "nlme/Ovary", "Mare", "follicles", "Time Time^2", train=7, test=4),
    "cress": Table(
        "Genotypes of cress: number of fruits by nutrient, clipping, rack and status; region",
        "lme4/Arabidopsis", "gen", "total.fruits", "nutrient amd=clipped rack status=*", "reg=*",
        train=16, test=8),
    "families": Table(
        "Families: height of a child by sex; heights of father and mother, number of children",
        "HistData/GaltonFamilies", "family", "childHeight", "gender=male",
        "father mother children", train=88, test=60, points=UP_TO_3),
    # Sensors.
    "motorway": Table(
        "Days: log nitrogen oxides in an hour by log emission and wind; number of the day",
        "robustbase/NOxEmissions", "julday", "LNOx", "LNOxEm sqrtWS", "julday",
        train=200, test=100),
    "electrodes": Table(
        "Electrodes: amplitude of the EEG by time and its square; place on the head",
        "itsadug/eeg", "Electrode", "Ampl", "Time Time^2", "X Y", train=21, test=11),
    "speeds": Table(
        "Pairs of sites: speed of a car by period and warning sign; no side information",
        "boot/amis", "pair", "speed", "period=* warning=1", train=9, test=5),
}

CLASSES: dict[str, Table] = {
    "crackers": Table(
        "Households: is the brand Nabisco bought, by prices, displays and adverts; no side",
        "Ecdat/Cracker", "id", "choice=nabisco",
        "price.sunshine price.kleebler price.nabisco price.private "
        "disp.sunshine disp.kleebler disp.nabisco disp.private "
        "feat.sunshine feat.kleebler feat.nabisco feat.private", train=90, test=46, classes=True),
    "hiv-results": Table(
        "Villages: does a person fetch an HIV result, by reward, age, result, distance; its mean",
        "causaldata/thornton_hiv", "villnum", "got", "any tinc age distvct hiv2004",
        "mean(distvct)", train=74, test=40, classes=True),
    "breathing": Table(
        "Patients: is breathing good, by month; treatment, centre, sex, age",
        "HSAUR/respiratory", "subject", "status=good", "month",
        "treatment=treatment centre=2 sex=male age", train=72, test=39, points=UP_TO_3,
        classes=True),
    "police-searches": Table(
        "Neighbourhoods: is a stopped person searched, by reason, race and sex; place",
        "carData/MplsStops", "neighborhood", "personSearch=YES",
        "problem=suspicious race=* gender=*", "mean(lat) mean(long)", train=55, test=28,
        classes=True),
    "refugees": Table(
        "Judges: is leave to appeal granted, by merit, language, place, nation; no side",
        "carData/Greene", "judge", "decision=yes",
        "rater=yes language=French location=* success", train=6, test=4, points=UP_TO_5,
        classes=True),
    "resumes": Table(
        "First names: is an applicant called back, by 12 columns of the resume; sex, ethnicity",
        "AER/ResumeNames", "name", "call=yes",
        "quality=high city=chicago jobs experience honors=yes volunteer=yes military=yes "
        "holes=yes school=yes email=yes computer=yes special=yes", "gender=female ethnicity=afam",
        train=24, test=12, classes=True),
}

TABLES: dict[str, Table] = NUMBERS | CLASSES
