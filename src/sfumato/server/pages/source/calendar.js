// Days, minutes and periods of the calendar, numbered from the beginning of the year 1, a Monday.
//
// As schema/calendar.py. Only minutes count: no step of a column is shorter.

const MINUTES_A_DAY = 1440;
const LAST_YEAR = 9999;
const LENGTHS = { minute: 1, hour: 60, day: MINUTES_A_DAY, week: 7 * MINUTES_A_DAY };
const MONTHS = { month: 1, quarter: 3, year: 12 };

export const DAY_STEPS = ["day", "week", "month", "quarter", "year"];
export const TIME_STEPS = ["minute", "hour", ...DAY_STEPS];

const GROUPS = {
  Y: "(?<Y>[0-9]{4})",
  m: "(?<m>[0-9]{1,2})",
  d: "(?<d>[0-9]{1,2})",
  H: "(?<H>[0-9]{1,2})",
  M: "(?<M>[0-9]{1,2})",
  S: "(?<S>[0-9]{1,2})",
  f: "(?<f>[0-9]{1,6})[0-9]{0,3}",
  z: "(?<z>Z|[+-][0-9]{2}:?[0-9]{2})",
  "%": "%",
};
const ISO_TIME =
  "^(?<Y>[0-9]{4})-(?<m>[0-9]{2})-(?<d>[0-9]{2})" +
  "(?:[T ](?<H>[0-9]{2}):(?<M>[0-9]{2})(?::(?<S>[0-9]{2})(?:\\.(?<f>[0-9]{1,6})[0-9]{0,3})?)?)?" +
  "(?<z>Z|[+-][0-9]{2}:?[0-9]{2})?$";
const ISO_DAY = "^(?<Y>[0-9]{4})-(?<m>[0-9]{2})-(?<d>[0-9]{2})$";

/** The letters of a format like %d.%m.%Y; null if one of them is unknown. */
export function directives(format) {
  const found = Array.from(format.matchAll(/%(.?)/gs), (match) => match[1]);
  return found.every((letter) => letter in GROUPS) ? found.filter((each) => each !== "%") : null;
}

/** The minute of a written moment, and whether it has an offset; null if it is none. */
export function momentOf(text, format) {
  return found(text, format === null ? ISO_TIME : patternOf(format));
}

/** The first minute of a written day; null if it is none. */
export function dayOf(text, format) {
  const moment = found(text, format === null ? ISO_DAY : patternOf(format));
  return moment === null ? null : moment.minute;
}

/** The number of the period that a minute lies in. */
export function periodOf(step, minute) {
  if (step in LENGTHS) return Math.floor(minute / LENGTHS[step]);
  return Math.floor(monthOf(Math.floor(minute / MINUTES_A_DAY)) / MONTHS[step]);
}

/** The first minute of a period. */
export function periodStart(step, period) {
  if (step in LENGTHS) return period * LENGTHS[step];
  const month = period * MONTHS[step];
  return dayNumber(Math.floor(month / 12) + 1, (month % 12) + 1, 1) * MINUTES_A_DAY;
}

/** How a period is called that begins in a minute. */
export function periodLabel(step, minute) {
  const [year, month, day] = date(Math.floor(minute / MINUTES_A_DAY));
  const [hour, left] = [Math.floor((minute % MINUTES_A_DAY) / 60), minute % 60];
  const text = [String(year).padStart(4, "0"), two(month), two(day)];
  if (step === "year") return text[0];
  if (step === "month" || step === "quarter") return text.slice(0, 2).join("-");
  if (step === "hour") return `${text.join("-")} ${two(hour)}:00`;
  if (step === "minute") return `${text.join("-")} ${two(hour)}:${two(left)}`;
  return text.join("-");
}

function patternOf(format) {
  const parts = format.split(/(%.)/s);
  const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  const inside = parts.map((part) => (part[0] === "%" ? GROUPS[part[1]] : escaped(part)));
  return `^${inside.join("")}$`;
}

function found(text, pattern) {
  const parts = new RegExp(pattern).exec(text.trim())?.groups;
  if (!parts) return null;
  const [year, month, day, hour, minute, second] = Array.from("YmdHMS", (each) =>
    Number(parts[each] ?? 0),
  );
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null;
  if (hour > 23 || minute > 59 || second > 59) return null;
  const shift = offset(parts.z ?? "Z");
  const total = dayNumber(year, month, day) * MINUTES_A_DAY + hour * 60 + minute - shift;
  const end = dayNumber(LAST_YEAR + 1, 1, 1) * MINUTES_A_DAY;
  if (Number.isNaN(total) || total < 0 || total >= end) return null;
  return { minute: total, zoned: parts.z !== undefined };
}

/** Minutes before UTC of Z, +02:00 or +0200. */
function offset(text) {
  if (text === "Z") return 0;
  const [hours, minutes] = [Number(text.slice(1, 3)), Number(text.slice(-2))];
  if (hours > 23 || minutes > 59) return NaN;
  return (text[0] === "-" ? -1 : 1) * (hours * 60 + minutes);
}

function daysIn(year, month) {
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month === 2 ? 28 + Number(leap) : 30 + ((month + Math.floor(month / 8)) % 2);
}

function dayNumber(year, month, day) {
  const past = year - 1;
  let days = 365 * past + Math.floor(past / 4) - Math.floor(past / 100) + Math.floor(past / 400);
  for (let each = 1; each < month; each += 1) days += daysIn(year, each);
  return days + day - 1;
}

function date(days) {
  let year = Math.floor(days / 366) + 1;
  while (dayNumber(year + 1, 1, 1) <= days) year += 1;
  let month = 1;
  while (month < 12 && dayNumber(year, month + 1, 1) <= days) month += 1;
  return [year, month, days - dayNumber(year, month, 1) + 1];
}

function monthOf(days) {
  const [year, month] = date(days);
  return (year - 1) * 12 + month - 1;
}

function two(number) {
  return String(number).padStart(2, "0");
}
