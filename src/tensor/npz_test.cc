#include "tensor/npz.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "tensor/npy_header.h"

namespace heddle::tensor {
namespace {

namespace fs = std::filesystem;

std::string testdata(const std::string& name) {
  return std::string(HEDDLE_SOURCE_DIR) + "/src/tensor/testdata/" + name;
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class npz : public testing::Test {
 protected:
  npz() : folder_(fs::path(testing::TempDir()) / ("heddle_npz_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~npz() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

std::map<std::string, Literal> as_map(const NamedLiterals& list) {
  return {list.begin(), list.end()};
}

std::string text(const std::map<std::string, Literal>& map, const std::string& name) {
  auto found = map.find(name);
  if (found == map.end()) return "missing";
  return to_string(found->second.shape()) + " " + to_string(found->second);
}

// Files written by numpy, stored and deflated.
TEST_F(npz, ReadsEveryTypeOfNumpy) {
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    auto list = read_npz(testdata(file));
    ASSERT_TRUE(list) << list.error().message;
    auto map = as_map(*list);
    EXPECT_EQ(text(map, "pred"), "pred[3] {1, 0, 1}");
    EXPECT_EQ(text(map, "s8"), "s8[2] {-128, 127}");
    EXPECT_EQ(text(map, "s16"), "s16[2] {-32768, 32767}");
    EXPECT_EQ(text(map, "s32"), "s32[2,3] { {0, 1, 2}, {3, 4, 5} }");
    EXPECT_EQ(text(map, "s64"), "s64[2] {-9223372036854775808, 9223372036854775807}");
    EXPECT_EQ(text(map, "u8"), "u8[2] {0, 255}");
    EXPECT_EQ(text(map, "u16"), "u16[2] {0, 65535}");
    EXPECT_EQ(text(map, "u32"), "u32[2] {0, 4294967295}");
    EXPECT_EQ(text(map, "u64"), "u64[2] {0, 18446744073709551615}");
    EXPECT_EQ(text(map, "f16"), "f16[3] {0.5, -65500, inf}");
    EXPECT_EQ(text(map, "f32"), "f32[2,2] { {0.1, -inf}, {nan, 1e-45} }");
    EXPECT_EQ(text(map, "f64"), "f64[] 0.1");
    EXPECT_EQ(text(map, "c64"), "c64[1] {(1, 2)}");
    EXPECT_EQ(text(map, "c128"), "c128[1,1] { {(0.1, -1)} }");
    EXPECT_EQ(text(map, "empty"), "f32[0,3] {}");
    EXPECT_EQ(text(map, "dir/name.with.dots"), "f32[1,1,1] { { {0} } }");
    EXPECT_EQ(text(map,
                   "gr\xc3\xb6\xc3\x9f"
                   "e"),
              "f32[2] {1, 1}");
    auto typed = [&map](const char* name, Type type) {
      auto literal = as_type(map[name], type);
      return literal ? to_string(*literal) : literal.error().message;
    };
    EXPECT_EQ(map["bf16"].type(), Type::u16);
    EXPECT_EQ(typed("bf16", Type::bf16), "{1.5, -3}");
    EXPECT_EQ(typed("f8e4m3fn", Type::f8e4m3fn), "{450, -1}");
    EXPECT_EQ(typed("f8e5m2", Type::f8e5m2), "{60000, -1}");
    EXPECT_EQ(typed("s4", Type::s4), "{-8, 7, -1}");
    EXPECT_EQ(typed("u4", Type::u4), "{15, 0}");
    EXPECT_EQ(typed("f4e2m1fn", Type::f4e2m1fn), "{6, -0.5}");
  }
  EXPECT_EQ(read_npz(testdata("stored.npz"))->front().first, "pred");
  EXPECT_EQ(as_map(*read_npz(testdata("deflated.npz")))["zeros"].elems(), 10000);
}

TEST_F(npz, FortranOrderIsTransposed) {
  auto literal = read_npy(testdata("fortran.npy"));
  ASSERT_TRUE(literal) << literal.error().message;
  EXPECT_EQ(to_string(literal->shape()), "s32[2,3,4]");
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(literal->get_s64(i), i);
}

TEST_F(npz, ReadsHeaderVersions) {
  for (const char* file : {"version2.npy", "version3.npy"}) {
    auto literal = read_npy(testdata(file));
    ASSERT_TRUE(literal) << literal.error().message;
    EXPECT_EQ(to_string(*literal), "{0, 1, 2, 3}");
  }
}

TEST_F(npz, RefusesByName) {
  auto message = [](const char* file) {
    auto literal = read_npy(testdata(file));
    return literal ? "read" : literal.error().message;
  };
  EXPECT_NE(message("big_endian.npy").find("big-endian dtype '>f4'"), std::string::npos);
  EXPECT_NE(message("strings.npy").find("strings, dtype '<U2'"), std::string::npos);
  EXPECT_NE(message("objects.npy").find("pickled objects, dtype '|O'"), std::string::npos);
  EXPECT_NE(message("structured.npy").find("structured dtypes"), std::string::npos);
  EXPECT_NE(message("absent.npy").find("absent.npy: cannot be read"), std::string::npos);
  EXPECT_NE(message("make.py").find("not an npy array"), std::string::npos);
  EXPECT_NE(message("").find("not a regular file"), std::string::npos);
  EXPECT_FALSE(read_npz(testdata("fortran.npy")));
  EXPECT_FALSE(read_npz(testdata("absent.npz")));
  EXPECT_FALSE(read_npz(testdata("")));
}

// One literal of every array type, with bytes that are valid for it.
NamedLiterals one_of_each() {
  NamedLiterals list;
  for (int i = 0; i <= static_cast<int>(Type::tuple); ++i) {
    auto type = static_cast<Type>(i);
    if (!is_array_type(type)) continue;
    Literal literal(Shape::array(type, {2, 3}));
    for (int64_t e = 0; e < 6; ++e) literal.set_f64(e, is_float(type) ? e * 0.5 + 0.5 : e % 3);
    list.emplace_back(std::string(type_name(type)), literal);
  }
  Literal scalar(Shape::scalar(Type::f32));
  scalar.set_f64(0, -2.5);
  list.emplace_back("scalar", scalar);
  list.emplace_back("x#0", Literal(Shape::array(Type::s32, {4, 0})));
  return list;
}

TEST_F(npz, WritesAndReadsBackEveryType) {
  NamedLiterals list = one_of_each();
  ASSERT_TRUE(write_npz(path("a.npz"), list));
  auto back = read_npz(path("a.npz"));
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->size(), list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ((*back)[i].first, list[i].first);
    auto typed = as_type((*back)[i].second, list[i].second.type());
    ASSERT_TRUE(typed) << typed.error().message;
    EXPECT_EQ(*typed, list[i].second) << list[i].first;

    ASSERT_TRUE(write_npy(path("b.npy"), list[i].second));
    auto alone = read_npy(path("b.npy"));
    ASSERT_TRUE(alone) << alone.error().message;
    EXPECT_EQ(*as_type(*alone, list[i].second.type()), list[i].second) << list[i].first;
  }
  EXPECT_EQ(files(), 2u);  // no temporary is left
}

TEST_F(npz, EqualContentIsEqualBytes) {
  ASSERT_TRUE(write_npz(path("a.npz"), one_of_each()));
  ASSERT_TRUE(write_npz(path("b.npz"), one_of_each()));
  EXPECT_EQ(read_bytes(path("a.npz")), read_bytes(path("b.npz")));
}

TEST_F(npz, NoArrays) {
  ASSERT_TRUE(write_npz(path("none.npz"), {}));
  auto back = read_npz(path("none.npz"));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back->empty());
}

TEST_F(npz, WritingReplacesOrLeavesTheOldFile) {
  Literal one(Shape::scalar(Type::f32));
  ASSERT_TRUE(write_npz(path("a.npz"), {{"a", one}, {"b", one}}));
  std::string before = read_bytes(path("a.npz"));
  for (const NamedLiterals& bad :
       {NamedLiterals{{"a", one}, {"a", one}}, NamedLiterals{{"", one}},
        NamedLiterals{{"t", Literal::tuple({one})}}, NamedLiterals{{std::string("a\0b", 3), one}},
        NamedLiterals{{"bad\xff", one}}}) {
    EXPECT_FALSE(write_npz(path("a.npz"), bad));
  }
  EXPECT_EQ(read_bytes(path("a.npz")), before);
  ASSERT_TRUE(write_npz(path("a.npz"), {{"a", one}}));
  EXPECT_EQ(read_npz(path("a.npz"))->size(), 1u);
  EXPECT_EQ(files(), 1u);
  auto status = write_npz(path("absent/a.npz"), {{"a", one}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::machine);
  EXPECT_EQ(write_npy(path("absent/a.npy"), one).error().kind, ErrorKind::machine);
  EXPECT_FALSE(write_npy(path("t.npy"), Literal()));
}

// Every prefix of a file is an error; every changed byte is an error or an array of the file's
// size: nothing crashes or allocates more than the file holds.
TEST_F(npz, DamagedFilesAreErrors) {
  for (const char* file : {"small.npz", "small_deflated.npz"}) {
    std::string bytes = read_bytes(testdata(file));
    for (size_t n = 0; n < bytes.size(); ++n) {
      write_bytes(path("cut.npz"), bytes.substr(0, n));
      ASSERT_FALSE(read_npz(path("cut.npz"))) << file << " cut to " << n;
    }
    size_t errors = 0;
    for (size_t n = 0; n < bytes.size(); ++n) {
      for (int flip : {0x01, 0x80, 0xff}) {
        std::string damaged = bytes;
        damaged[n] = static_cast<char>(damaged[n] ^ flip);
        write_bytes(path("flip.npz"), damaged);
        auto list = read_npz(path("flip.npz"));
        errors += !list;
        if (!list) continue;
        for (const auto& [name, literal] : *list) ASSERT_LE(literal.bytes(), 4096);
      }
    }
    EXPECT_GT(errors, bytes.size());  // the rest are times, flags and names
  }
  std::string npy = read_bytes(testdata("version3.npy"));
  for (size_t n = 0; n < npy.size(); ++n) {
    write_bytes(path("cut.npy"), npy.substr(0, n));
    ASSERT_FALSE(read_npy(path("cut.npy"))) << n;
  }
  write_bytes(path("long.npy"), npy + "x");
  EXPECT_FALSE(read_npy(path("long.npy")));
}

// The header of version 1 with this dictionary.
std::string header(const std::string& dictionary) {
  std::string result = "\x93NUMPY\x01";
  result += '\0';
  result += static_cast<char>(dictionary.size() & 0xff);
  result += static_cast<char>(dictionary.size() >> 8);
  return result + dictionary;
}

TEST_F(npz, HeadersThatLieAreErrors) {
  const char* bad[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4000000000, 4000000000), }",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 1, }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
      "{'descr': '<f4', 'shape': (1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } trailing",
      "{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '<V4', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '",
      "{",
      "",
      "(((((((((((((((((((("};
  for (const char* dictionary : bad) {
    EXPECT_FALSE(parse_npy_header(header(dictionary))) << dictionary;
  }
}

// Refused by the file's size, before anything is allocated.
TEST_F(npz, MoreElementsThanTheFileHolds) {
  write_bytes(path("big.npy"),
              header("{'descr': '<f4', 'fortran_order': True, 'shape': (1000000, 1000000), }"));
  auto big = read_npy(path("big.npy"));
  ASSERT_FALSE(big);
  EXPECT_NE(big.error().message.find("wants 4000000000000 bytes of elements, got 0"),
            std::string::npos)
      << big.error().message;
}

// Random changes of text: an error or a value, nothing else.
TEST_F(npz, RandomTextIsSafe) {
  std::mt19937 random(4);
  auto change = [&random](std::string text) {
    const std::string alphabet = "{}()[]'\",:xL-+.e019 fnNTF";
    for (size_t n = 1 + random() % 3; n-- > 0;) {
      size_t at = random() % (text.size() + 1);
      if (random() % 2 && at < text.size()) {
        text.erase(at, 1 + random() % 3);
      } else {
        text.insert(at, 1, alphabet[random() % alphabet.size()]);
      }
    }
    return text;
  };
  int headers = 0, specs = 0;
  for (int round = 0; round < 20000; ++round) {
    auto parsed = parse_npy_header(
        header(change("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }")));
    headers += parsed.has_value();
    ASSERT_TRUE(!parsed || parsed->data_bytes >= 0);
    auto literal = parse_literal_spec(change("2x2xf32=1 -2.5 inf 4e2"));
    specs += literal.has_value();
  }
  EXPECT_GT(headers, 100);
  EXPECT_GT(specs, 100);
}

TEST_F(npz, HeaderVariants) {
  auto parsed =
      parse_npy_header(header("{\"shape\":(2L,3L),'fortran_order':True,'descr':'=f8'}\n"));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->dims, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(parsed->fortran_order);
  EXPECT_EQ(parsed->data_bytes, 48);
  auto scalar = parse_npy_header(header("{'descr':'|u1','fortran_order':False,'shape':()}"));
  ASSERT_TRUE(scalar) << scalar.error().message;
  EXPECT_EQ(scalar->data_bytes, 1);
  std::string made = *make_npy_header(Type::f32, {3});
  EXPECT_EQ(made.size() % 64, 0u);
  EXPECT_EQ(made.substr(10, 57), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
  EXPECT_EQ(parse_npy_header(*make_npy_header(Type::f32, {}))->dims.size(), 0u);
  std::vector<int64_t> many(64, 1);
  EXPECT_EQ(parse_npy_header(*make_npy_header(Type::f32, many))->dims, many);
  many.push_back(1);
  EXPECT_FALSE(parse_npy_header(*make_npy_header(Type::f32, many)));
  EXPECT_FALSE(make_npy_header(Type::token, {}));
}

TEST_F(npz, AsType) {
  Literal raw = Literal::from<uint8_t>(Shape::array(Type::u8, {2}), std::vector<uint8_t>{0xf8, 7});
  EXPECT_EQ(to_string(*as_type(raw, Type::s4)), "{-8, 7}");
  EXPECT_EQ(as_type(raw, Type::u8)->data(), raw.data());
  Literal nibbles =
      Literal::from<uint8_t>(Shape::array(Type::u8, {2}), std::vector<uint8_t>{0x08, 0x0f});
  EXPECT_EQ(to_string(*as_type(nibbles, Type::s4)), "{-8, -1}");
  EXPECT_EQ(to_string(*as_type(nibbles, Type::u4)), "{8, 15}");
  Literal wrong = Literal::from<uint8_t>(Shape::array(Type::u8, {1}), std::vector<uint8_t>{0x57});
  EXPECT_FALSE(as_type(wrong, Type::s4));
  EXPECT_TRUE(as_type(wrong, Type::f8e5m2));
  for (Type type : {Type::s8, Type::pred, Type::bf16, Type::f32, Type::tuple}) {
    EXPECT_FALSE(as_type(raw, type)) << type_name(type);
  }
  Literal floats(Shape::array(Type::f32, {1}));
  EXPECT_TRUE(as_type(floats, Type::f32));
  EXPECT_EQ(as_type(floats, Type::s32).error().message,
            "got f32, wanted s32; convert the array with astype");
  EXPECT_FALSE(as_type(Literal(Shape::array(Type::u16, {1})), Type::f16));
}

TEST_F(npz, LiteralSpecs) {
  auto read = [](const char* spec) {
    auto literal = parse_literal_spec(spec);
    return literal ? to_string(literal->shape()) + " " + to_string(*literal)
                   : "error: " + literal.error().message;
  };
  EXPECT_EQ(read("2x2xf32=1 2 3 4"), "f32[2,2] { {1, 2}, {3, 4} }");
  EXPECT_EQ(read("2xf32=1, -2.5e3"), "f32[2] {1, -2500}");
  EXPECT_EQ(read("f32=1"), "f32[] 1");
  EXPECT_EQ(read("4xs32=7"), "s32[4] {7, 7, 7, 7}");
  EXPECT_EQ(read("0xf32="), "f32[0] {}");
  EXPECT_EQ(read("0x2xf32=1"), "f32[0,2] {}");
  EXPECT_EQ(read("3xf16=inf -inf nan"), "f16[3] {inf, -inf, nan}");
  EXPECT_EQ(read("2xpred=true 0"), "pred[2] {1, 0}");
  EXPECT_EQ(read("2xc64=(1,2) 3"), "c64[2] {(1, 2), (3, 0)}");
  EXPECT_EQ(read("c128=( 1 , -2 )"), "c128[] (1, -2)");
  EXPECT_EQ(read("2xs4=-8 7"), "s4[2] {-8, 7}");
  EXPECT_EQ(read("u64=18446744073709551615"), "u64[] 18446744073709551615");
  EXPECT_EQ(read("s64=-9223372036854775808"), "s64[] -9223372036854775808");
  EXPECT_EQ(read("f8e4m3b11fnuz=30"), "f8e4m3b11fnuz[] 30");
  EXPECT_EQ(read("2xf32=1 2 3"), "error: '2xf32': 3 values, wanted 2 or one that fills");
  for (const char* bad : {"",
                          "f32",
                          "=1",
                          "x=1",
                          "2x=1",
                          "2x2=1",
                          "f33=1",
                          "-1xf32=1",
                          "2 xf32=1",
                          "xf32=1",
                          "2xf32=",
                          "f32=",
                          "f32=a",
                          "f32=1x",
                          "f32=++1",
                          "f32=+",
                          "s32=1.5",
                          "s32=2147483648",
                          "u8=-1",
                          "u8=256",
                          "s4=8",
                          "u1=2",
                          "pred=2",
                          "f16=1e6",
                          "f32=1e400",
                          "c64=(1,2",
                          "c64=(1)",
                          "c64=(1,2,3)",
                          "c64=()",
                          "token=1",
                          "(tuple)=1",
                          "99999999999xf32=1",
                          "4000000000x4000000000x4000000000xf32=0",
                          "99999999999999999999xf32=0"}) {
    EXPECT_FALSE(parse_literal_spec(bad)) << bad;
  }
}

}  // namespace
}  // namespace heddle::tensor
