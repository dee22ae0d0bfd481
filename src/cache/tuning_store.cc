#include "cache/tuning_store.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "cache/object_cache.h"

namespace heddle::cache {
namespace {

constexpr const char* kHead = "heddle tuning records 1";
// Longest wait for a process that has locked the file; after kQuietMs a note is printed.
constexpr int kBusyMs = 5000, kQuietMs = 1000, kRetryMs = 50;

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS records(device TEXT NOT NULL, key TEXT NOT NULL, record TEXT NOT "
    "NULL, ns REAL NOT NULL, untuned_ns REAL NOT NULL, measured TEXT NOT NULL, PRIMARY KEY(device, "
    "key)) WITHOUT ROWID";

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

class Statement {
 public:
  Statement(sqlite3* database, const char* text) {
    sqlite3_prepare_v2(database, text, -1, &statement_, nullptr);
  }
  Statement(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }
  explicit operator bool() const { return statement_ != nullptr; }

  void bind(int place, const std::string& text) {
    sqlite3_bind_text(statement_, place, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  void bind(int place, double value) { sqlite3_bind_double(statement_, place, value); }
  int step() { return sqlite3_step(statement_); }
  std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    const int bytes = sqlite3_column_bytes(statement_, column);
    return data ? std::string(data, static_cast<size_t>(bytes)) : std::string();
  }
  double number(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

// Called repeatedly while another process has locked the file; 0: gives up.
int wait_for_lock(void* /*context*/, int tries) {
  if (tries * kRetryMs >= kBusyMs) return 0;
  if (tries * kRetryMs == kQuietMs)
    fmt::print(stderr, "note: waiting for the tuning records, which another process has locked\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(kRetryMs));
  return 1;
}

Database open_file(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database database(raw);
  if (code != SQLITE_OK) return nullptr;
  sqlite3_busy_handler(raw, wait_for_lock, nullptr);
  return database;
}

// Opening a pipe would wait for a writer. Error (machine): it exists but is not a regular file.
Status check_regular(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return {};
  return machine_error("tuning records: {} is not a regular file; remove it", path);
}

bool run(sqlite3* database, const char* text) {
  return sqlite3_exec(database, text, nullptr, nullptr, nullptr) == SQLITE_OK;
}

constexpr const char* kSelect =
    "SELECT device, key, record, ns, untuned_ns, measured FROM records WHERE ?1 = '' OR device = "
    "?1 ORDER BY device, key";

Result<std::vector<TuningRecord>> select(sqlite3* database, const std::string& device) {
  Statement statement(database, kSelect);
  if (!statement) return machine_error("tuning records: {}", sqlite3_errmsg(database));
  statement.bind(1, device);
  std::vector<TuningRecord> records;
  int code;
  while ((code = statement.step()) == SQLITE_ROW)
    records.push_back({statement.text(0), statement.text(1), statement.text(2), statement.number(3),
                       statement.number(4), statement.text(5)});
  if (code != SQLITE_DONE) return machine_error("tuning records: {}", sqlite3_errmsg(database));
  return records;
}

}  // namespace

struct TuningStore::State {
  std::string path;
  Database database;
};

TuningStore::TuningStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
TuningStore::~TuningStore() = default;
TuningStore::TuningStore(TuningStore&&) noexcept = default;
TuningStore& TuningStore::operator=(TuningStore&&) noexcept = default;

const std::string& TuningStore::path() const { return state_->path; }

Result<TuningStore> TuningStore::open(const std::string& directory) {
  // Creates and checks the folder, in the same way as for objects.
  HEDDLE_ASSIGN_OR_RETURN(const ObjectCache cache, ObjectCache::open(directory));
  auto state = std::make_unique<State>();
  state->path = tuning_file(cache.directory());
  HEDDLE_RETURN_IF_ERROR(check_regular(state->path));
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  for (int attempt = 0; attempt < 2; ++attempt) {
    state->database = open_file(state->path, kFlags);
    if (state->database && run(state->database.get(), kSchema) &&
        select(state->database.get(), "-").has_value())
      return TuningStore(std::move(state));
    const int code = state->database ? sqlite3_errcode(state->database.get()) : SQLITE_ERROR;
    state->database.reset();
    if (code != SQLITE_NOTADB && code != SQLITE_CORRUPT) break;
    std::rename(state->path.c_str(), (state->path + ".damaged").c_str());
  }
  return machine_error("tuning records: cannot open {}", state->path);
}

std::string tuning_file(const std::string& directory) { return directory + "/tuning.db"; }

Result<std::map<std::string, std::string>> TuningStore::load(const std::string& directory,
                                                             const std::string& device) {
  std::map<std::string, std::string> result;
  const std::string path = tuning_file(directory);
  struct stat info;
  if (directory.empty() || stat(path.c_str(), &info) != 0) return result;
  HEDDLE_RETURN_IF_ERROR(check_regular(path));
  const Database database = open_file(path, SQLITE_OPEN_READONLY);
  if (!database) return result;
  // A damaged file counts as empty: records only make programs faster.
  const auto records = select(database.get(), device);
  if (!records) return result;
  for (const TuningRecord& record : *records) result.emplace(record.key, record.record);
  return result;
}

Status TuningStore::put(const TuningRecord& record) {
  Statement statement(state_->database.get(),
                      "INSERT OR REPLACE INTO records VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  if (!statement)
    return machine_error("tuning records: {}", sqlite3_errmsg(state_->database.get()));
  statement.bind(1, record.device);
  statement.bind(2, record.key);
  statement.bind(3, record.record);
  statement.bind(4, record.ns);
  statement.bind(5, record.untuned_ns);
  statement.bind(6, record.measured);
  if (statement.step() != SQLITE_DONE)
    return machine_error("tuning records: cannot write {}: {}", state_->path,
                         sqlite3_errmsg(state_->database.get()));
  return {};
}

Result<std::vector<TuningRecord>> TuningStore::records(const std::string& device) const {
  return select(state_->database.get(), device);
}

Status TuningStore::clear() {
  if (!run(state_->database.get(), "DELETE FROM records"))
    return machine_error("tuning records: {}", sqlite3_errmsg(state_->database.get()));
  return {};
}

std::string to_text(const std::vector<TuningRecord>& records) {
  std::string text = std::string(kHead) + "\n";
  for (const TuningRecord& record : records)
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", record.device, record.key, record.record,
                        record.ns, record.untuned_ns, record.measured);
  return text;
}

Result<std::vector<TuningRecord>> parse_tuning_text(std::string_view text) {
  std::vector<TuningRecord> records;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (++number == 1) {
      if (line != kHead)
        return user_error("tuning records, line 1: got '{}', wanted '{}'", line.substr(0, 40),
                          kHead);
      continue;
    }
    if (line.empty()) continue;
    std::vector<std::string> fields(1);
    for (char c : line) {
      if (c == '\t')
        fields.emplace_back();
      else
        fields.back() += c;
    }
    auto to_number = [&](const std::string& field, double* value) {
      auto [stop, code] = std::from_chars(field.data(), field.data() + field.size(), *value);
      return code == std::errc() && stop == field.data() + field.size() && *value >= 0;
    };
    TuningRecord record;
    if (fields.size() != 6 || fields[0].empty() || fields[1].empty() ||
        !to_number(fields[3], &record.ns) || !to_number(fields[4], &record.untuned_ns))
      return user_error(
          "tuning records, line {}: wanted device, key, record, ns, untuned ns and what was "
          "measured, by tabs",
          number);
    record.device = fields[0];
    record.key = fields[1];
    record.record = fields[2];
    record.measured = fields[5];
    records.push_back(std::move(record));
  }
  if (number == 0) return user_error("tuning records: empty; wanted '{}' first", kHead);
  return records;
}

}  // namespace heddle::cache
