// Comma-separated values: bytes -> numbers and coded texts. A pure function of the bytes it is given: it parses the whole
// records that they hold, says where they ended, and stops before the first record that is wrong.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>
#include <locale.h>

namespace gossamer {

// The destination of a field: a column of the matrix (0, 1, ...), or one of these; text number k is first_text - k.
struct Slots {
    static constexpr int ignored = -1, target = -2, first_text = -3;
};

struct CsvLayout {
    char delimiter = ',', decimal = '.';
    std::vector<int> slots;               // one per field of a record
    std::size_t width = 0, texts = 0;     // columns of the matrix, texts
    std::vector<std::string> missing;     // texts of a missing value
    std::vector<double> missing_numbers;  // numbers that mark a missing value
    bool lenient = false;                 // a feature that is no number is missing; else the record is wrong
};

enum class CsvError { none, too_few, too_many, not_number, not_finite, after_quote, open_quote };

// Texts as codes, in order of first appearance; -1 is a missing text.
struct CodedText {
    std::vector<std::int32_t> codes;
    std::vector<std::string_view> values;
    std::unordered_map<std::string_view, std::int32_t> places;
};

struct CsvRows {
    std::vector<double> matrix, target;  // (rows, width), (rows); NaN where missing
    std::vector<CodedText> texts;
    std::vector<std::int64_t> starts,
        lines;  // of each record: its first byte, its first line (from 0), and of the rest
    std::int64_t missing = 0;
    CsvError error = CsvError::none;
    std::size_t error_column = 0, error_fields = 0;
    std::string error_text;
    std::vector<std::pair<std::size_t, std::string>> strays;  // the columns and texts that were taken for missing
    std::deque<std::string> unescaped;                        // owns the fields with doubled quotes
};

// The C locale, not the user's.
inline double decimal_strtod(const std::string& text, char** stop) {
    static const locale_t c = newlocale(LC_ALL_MASK, "C", nullptr);
    return strtod_l(text.c_str(), stop, c);
}

// The number that [first, last) begins with and where it ends; last pointer == first if there is none.
inline const char* read_double(const char* first, const char* last, double& value) {
    const char* p = first != last && *first == '+' ? first + 1 : first;
    if (p != first && p != last && (*p == '-' || *p == '+')) return first;
#if defined(__cpp_lib_to_chars)
    const auto [end, code] = std::from_chars(p, last, value);
    if (code == std::errc::invalid_argument) return first;
    if (code == std::errc::result_out_of_range) value = decimal_strtod(std::string(p, end), nullptr);
    return end;
#else
    // no from_chars for doubles in this library: strtod, kept to decimal numbers
    const char* end = p;
    while (end != last &&
           (std::string_view("+-.eE").find(*end) != std::string_view::npos || (*end >= '0' && *end <= '9')))
        ++end;
    const std::string text(p, end);
    char* stop = nullptr;
    value = decimal_strtod(text, &stop);
    return stop == text.c_str() ? first : p + (stop - text.c_str());
#endif
}

class CsvParser {
public:
    CsvParser(const CsvLayout& layout, const char* begin, const char* end, bool final)
        : layout(layout), begin(begin), end(end), final(final),
          plain(layout.decimal == '.' && layout.missing_numbers.empty()) {}

    CsvRows run(std::size_t max_rows) {
        out.texts.resize(layout.texts);
        // a field takes at least a byte and a delimiter
        const auto most = static_cast<std::size_t>(end - begin) / (2 * layout.slots.size()) + 1;
        out.matrix.reserve(std::min(max_rows, most) * layout.width);
        p = begin;
        out.starts.push_back(0);
        out.lines.push_back(0);
        for (std::size_t row = 0; row < max_rows; ++row) {
            if (!skip_blank_lines()) break;
            // the record's own numbers: the end of the one before may have been followed by blank lines
            out.starts.back() = p - begin;
            out.lines.back() = line;
            const std::int64_t missing = out.missing;
            const std::size_t strays = out.strays.size();
            if (record(row) != Outcome::done) {
                drop(row);
                out.missing = missing;
                out.strays.resize(strays);
                break;
            }
            out.starts.push_back(p - begin);
            out.lines.push_back(line);
        }
        return std::move(out);
    }

private:
    enum class Outcome { done, incomplete, wrong };
    enum class After { delimiter, record, incomplete, other };
    static constexpr double nan = std::numeric_limits<double>::quiet_NaN();

    const CsvLayout& layout;
    const char *begin, *end, *p = nullptr;
    bool final, plain;  // plain: numbers have a decimal point, and no number marks a missing value
    std::int64_t line = 0;
    CsvRows out;

    bool blank(char c) const { return (c == ' ' || c == '\t') && c != layout.delimiter; }

    // False where no record begins: at the end, or where more bytes are needed to decide.
    bool skip_blank_lines() {
        while (p != end && (*p == '\n' || *p == '\r')) {
            if (*p == '\r' && p + 1 == end && !final) return false;
            p += *p == '\r' && p + 1 != end && p[1] == '\n' ? 2 : 1;
            ++line;
        }
        return p != end;
    }

    // The delimiter or line end after a field at p; moves past it.
    After after_field() {
        while (p != end && blank(*p)) ++p;
        if (p == end) return final ? After::record : After::incomplete;
        if (*p == layout.delimiter) return ++p, After::delimiter;
        if (*p == '\n') return ++p, ++line, After::record;
        if (*p != '\r') return After::other;
        if (p + 1 == end && !final) return After::incomplete;
        p += p + 1 != end && p[1] == '\n' ? 2 : 1;
        return ++line, After::record;
    }

    Outcome record(std::size_t row) {
        const std::size_t fields = layout.slots.size();
        out.matrix.resize((row + 1) * layout.width, nan);
        out.target.resize(row + 1, nan);
        for (std::size_t column = 0;; ++column) {
            const int slot = column < fields ? layout.slots[column] : Slots::ignored;
            After after = After::other;
            if (slot >= 0 || slot == Slots::target) {
                double& place = slot >= 0 ? out.matrix[row * layout.width + slot] : out.target[row];
                const Outcome outcome = number(column, place, after, layout.lenient && slot >= 0);
                if (outcome != Outcome::done) return outcome;
            } else {
                std::string_view text;
                const Outcome outcome = field(column, text, after);
                if (outcome != Outcome::done) return outcome;
                if (slot <= Slots::first_text) code(out.texts[Slots::first_text - slot], text);
            }
            if (after == After::delimiter) continue;
            if (column + 1 == fields) return Outcome::done;
            out.error = column + 1 < fields ? CsvError::too_few : CsvError::too_many;
            out.error_column = std::min(column + 1, fields);
            out.error_fields = column + 1;
            return Outcome::wrong;
        }
    }

    Outcome number(std::size_t column, double& place, After& after, bool lenient) {
        while (p != end && blank(*p)) ++p;
        if (!plain) return other_number(column, place, after, lenient);
        const char* start = p;
        p = read_double(p, end, place);
        // words (nan, inf, nan(...)) are left to the whole field: a delimiter may be inside of what was read
        if (p != start && std::isfinite(place)) {
            after = after_field();
            if (after == After::incomplete) return Outcome::incomplete;
            if (after != After::other) return Outcome::done;
        }
        p = start;
        return other_number(column, place, after, lenient);
    }

    // Quoted, missing, with another decimal sign or no number at all. Not inlined: the fast path stays short.
    [[gnu::noinline]] Outcome other_number(std::size_t column, double& place, After& after, bool lenient) {
        std::string_view text;
        const Outcome outcome = field(column, text, after);
        if (outcome != Outcome::done) return outcome;
        if (is_missing(text)) return place = nan, ++out.missing, Outcome::done;
        const bool whole = whole_number(text, place);
        if (whole && !std::isinf(place)) return finish(place);
        if (lenient) {
            out.strays.emplace_back(column, text.substr(0, 80));
            return place = nan, ++out.missing, Outcome::done;
        }
        out.error = whole ? CsvError::not_finite : CsvError::not_number;
        out.error_column = column;
        out.error_text = std::string(text.substr(0, 80));
        return Outcome::wrong;
    }

    // Store a number: missing if it is NaN or marks a missing value.
    Outcome finish(double& place) {
        const auto& marks = layout.missing_numbers;
        if (!std::isnan(place) && (marks.empty() || std::find(marks.begin(), marks.end(), place) == marks.end()))
            return Outcome::done;
        return place = nan, ++out.missing, Outcome::done;
    }

    // Whether all of a text is a number.
    bool whole_number(std::string_view text, double& place) const {
        if (text.empty() || text.find('(') != std::string_view::npos) return false;  // nan(1) is none
        std::string copy;
        if (layout.decimal != '.') {
            if (text.find('.') != std::string_view::npos) return false;
            copy = text;
            std::replace(copy.begin(), copy.end(), layout.decimal, '.');
            text = copy;
        }
        const char* last = text.data() + text.size();
        return read_double(text.data(), last, place) == last;
    }

    Outcome field(std::size_t column, std::string_view& text, After& after) {
        while (p != end && blank(*p)) ++p;
        if (p == end && !final) return Outcome::incomplete;
        if (p != end && *p == '"') return quoted(column, text, after);
        const char* start = p;
        while (p != end && *p != layout.delimiter && *p != '\n' && *p != '\r') ++p;
        const char* stop = p;
        while (stop != start && blank(stop[-1])) --stop;
        text = {start, static_cast<std::size_t>(stop - start)};
        after = after_field();
        return after == After::incomplete ? Outcome::incomplete : Outcome::done;
    }

    Outcome quoted(std::size_t column, std::string_view& text, After& after) {
        const std::int64_t first_line = line;
        const char* start = ++p;
        std::string* copy = nullptr;
        for (;; ++p) {
            if (p == end) {
                if (!final) return Outcome::incomplete;
                out.error = CsvError::open_quote;
                out.error_column = column;
                line = first_line;
                return Outcome::wrong;
            }
            if (*p == '\n' || (*p == '\r' && (p + 1 == end || p[1] != '\n'))) ++line;
            if (*p == '"') {
                if (p + 1 == end && !final) return Outcome::incomplete;
                if (p + 1 == end || p[1] != '"') break;
                if (!copy) copy = &out.unescaped.emplace_back(start, p);
                ++p;
            }
            if (copy) copy->push_back(*p);
        }
        text = copy ? std::string_view(*copy) : std::string_view(start, static_cast<std::size_t>(p - start));
        ++p;
        after = after_field();
        if (after == After::incomplete) return Outcome::incomplete;
        if (after != After::other) return Outcome::done;
        out.error = CsvError::after_quote;
        out.error_column = column;
        return Outcome::wrong;
    }

    bool is_missing(std::string_view text) const {
        for (const std::string& written : layout.missing)
            if (text == written) return true;
        return false;
    }

    void code(CodedText& column, std::string_view text) {
        if (is_missing(text)) {
            column.codes.push_back(-1);
            ++out.missing;
            return;
        }
        const auto [place, fresh] = column.places.try_emplace(text, static_cast<std::int32_t>(column.values.size()));
        if (fresh) column.values.push_back(text);
        column.codes.push_back(place->second);
    }

    // Discard the unfinished record. (Texts that only it had may stay: no code refers to them.)
    void drop(std::size_t row) {
        out.matrix.resize(row * layout.width);
        out.target.resize(row);
        for (CodedText& column : out.texts) column.codes.resize(std::min(column.codes.size(), row));
    }
};

inline CsvRows parse_csv(const CsvLayout& layout, const char* begin, const char* end, bool final, std::size_t rows) {
    return CsvParser(layout, begin, end, final).run(rows);
}

}  // namespace gossamer
