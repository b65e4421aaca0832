// The border between Python and the parser of comma-separated values.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "io/csv.hpp"
#include "python/arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

void bind_csv(nb::module_& m) {
    m.attr("CSV_IGNORED") = int(Slots::ignored);
    m.attr("CSV_TARGET") = int(Slots::target);
    m.attr("CSV_TEXT") = int(Slots::first_text);
    m.def(
        "parse_csv",
        [](nb::bytes data, std::size_t start, bool final, char delimiter, const std::vector<int>& slots,
           std::size_t width, std::size_t texts, const std::vector<std::string>& missing, std::size_t rows,
           char decimal, const std::vector<double>& missing_numbers, bool lenient) {
            if (start > data.size() || slots.empty()) throw std::invalid_argument("start and slots must fit.");
            for (const int slot : slots)
                if (slot >= static_cast<int>(width) || slot <= Slots::first_text - static_cast<int>(texts))
                    throw std::invalid_argument("A slot must lie in the matrix or be a text.");
            const CsvLayout layout{delimiter, decimal, slots, width, texts, missing, missing_numbers, lenient};
            const char* begin = data.c_str() + start;
            const char* end = data.c_str() + data.size();
            CsvRows out;
            {
                nb::gil_scoped_release release;
                out = parse_csv(layout, begin, end, final, rows);
            }
            const std::size_t n = out.target.size();
            // the codes of all texts are rows of one matrix: a table may have many columns, and an array takes memory
            std::vector<std::int32_t> all(texts * n, -1);
            for (std::size_t i = 0; i < texts; ++i)
                std::copy(out.texts[i].codes.begin(), out.texts[i].codes.end(), all.data() + i * n);
            const nb::object codes = nb::cast(array(std::move(all), {texts, n}));
            nb::list columns;
            for (std::size_t i = 0; i < texts; ++i) {
                nb::list values;
                for (const std::string_view value : out.texts[i].values)
                    values.append(nb::bytes(value.data(), value.size()));
                columns.append(nb::make_tuple(codes[i], values));
                out.texts[i] = CodedText{};
            }
            static const char* const errors[] = {"",           "too_few",     "too_many",  "not_number",
                                                 "not_finite", "after_quote", "open_quote"};
            State result;
            result["X"] = array(std::move(out.matrix), {n, width});
            result["y"] = array(std::move(out.target), {n});
            result["texts"] = columns;
            result["starts"] = array(std::move(out.starts), {n + 1});
            result["lines"] = array(std::move(out.lines), {n + 1});
            result["missing"] = out.missing;
            nb::list strays;
            for (const auto& [column, text] : out.strays)
                strays.append(nb::make_tuple(column, nb::bytes(text.data(), text.size())));
            result["strays"] = strays;
            result["error"] = errors[static_cast<int>(out.error)];
            result["column"] = out.error_column;
            result["fields"] = out.error_fields;
            result["text"] = nb::bytes(out.error_text.data(), out.error_text.size());
            return result;
        },
        "data"_a, "start"_a, "final"_a, "delimiter"_a, "slots"_a, "width"_a, "texts"_a, "missing"_a, "rows"_a,
        "decimal"_a = '.', "missing_numbers"_a = std::vector<double>{}, "lenient"_a = false,
        "The whole records of data[start:], at most ``rows``, up to the first that is wrong.");
}
