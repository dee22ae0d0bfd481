#include "load.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "command_line.h"
#include "report.h"
#include "statistics.h"
#include "terminal.h"
#include "values.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kMostClients = 256;
constexpr double kMostRate = 1e6;

double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

struct Client {
  ContextHandle context;
  std::vector<tensor::Literal> outputs;
  std::vector<double> total, queue, run;
  Status status;
};

class Load {
 public:
  Load(double rate, double seconds, std::optional<int64_t> requests, uint64_t seed)
      : rate_(rate), seconds_(seconds), requests_(requests), random_(seed) {}

  Status add_client(heddle_program* program, std::vector<tensor::Literal>& inputs) {
    Client client;
    heddle_context* created = nullptr;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_create(program, &created)));
    client.context.reset(created);
    HEDDLE_ASSIGN_OR_RETURN(client.outputs, make_outputs(program));
    HEDDLE_RETURN_IF_ERROR(bind(created, inputs, client.outputs));
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(created)));  // its first run
    clients_.push_back(std::move(client));
    return {};
  }

  Result<LoadResult> run() {
    begin_ = last_arrival_ = Clock::now();
    working_ = clients_.size();
    std::vector<std::thread> threads;
    for (Client& client : clients_) threads.emplace_back([this, &client] { serve(client); });
    show_progress();
    for (std::thread& thread : threads) thread.join();
    LoadResult result;
    result.clients = static_cast<int64_t>(clients_.size());
    result.rate = rate_;
    result.seconds = Seconds(Clock::now() - begin_).count();
    for (Client& client : clients_) {
      HEDDLE_RETURN_IF_ERROR(client.status);
      result.total.insert(result.total.end(), client.total.begin(), client.total.end());
      result.queue.insert(result.queue.end(), client.queue.begin(), client.queue.end());
      result.run.insert(result.run.end(), client.run.begin(), client.run.end());
    }
    while (rate_ > 0 && !requests_ && next_arrival()) ++result.left;
    return result;
  }

 private:
  // The next request's arrival, in order; nothing: there are no more.
  std::optional<Clock::time_point> next_arrival() {
    const std::lock_guard lock(mutex_);
    if (requests_ && taken_ >= *requests_) return std::nullopt;
    Clock::time_point arrival = Clock::now();
    if (rate_ > 0) {
      const Seconds apart(std::exponential_distribution<double>(rate_)(random_));
      arrival = last_arrival_ + std::chrono::duration_cast<Clock::duration>(apart);
    }
    if (!requests_ && Seconds(arrival - begin_).count() > seconds_) return std::nullopt;
    last_arrival_ = arrival;
    ++taken_;
    return arrival;
  }

  bool out_of_time() const {
    return !requests_ && Seconds(Clock::now() - begin_).count() > seconds_;
  }

  void serve(Client& client) {
    while (client.status && !out_of_time()) {
      const std::optional<Clock::time_point> arrival = next_arrival();
      if (!arrival) break;
      std::this_thread::sleep_until(*arrival);
      const Clock::time_point begin = Clock::now();
      client.status = to_status(heddle_context_run(client.context.get()));
      const Clock::time_point end = Clock::now();
      client.queue.push_back(ms_between(*arrival, begin));
      client.run.push_back(ms_between(begin, end));
      client.total.push_back(ms_between(*arrival, end));
    }
    const std::lock_guard lock(mutex_);
    --working_;
    done_.notify_all();
  }

  void show_progress() {
    constexpr std::chrono::milliseconds kEach(200);
    Progress progress;
    std::unique_lock lock(mutex_);
    while (working_ > 0) {
      done_.wait_for(lock, kEach);
      const double passed = Seconds(Clock::now() - begin_).count();
      progress.show(requests_
                        ? fmt::format("{} requests", Progress::bar(taken_, *requests_))
                        : fmt::format("{} s", Progress::bar(static_cast<int64_t>(passed),
                                                            static_cast<int64_t>(seconds_ + 0.5))));
    }
  }

  const double rate_, seconds_;
  const std::optional<int64_t> requests_;
  std::mt19937_64 random_;
  std::vector<Client> clients_;
  std::mutex mutex_;  // of what follows
  std::condition_variable done_;
  Clock::time_point begin_, last_arrival_;
  int64_t taken_ = 0;
  size_t working_ = 0;
};

std::string line_of(const char* what, const std::vector<double>& ms) {
  const Statistics s = statistics_of(ms);
  return fmt::format("{}: median {}, p90 {}, p95 {}, p99 {}, max {}\n", what, ms_text(s.median),
                     ms_text(s.p90), ms_text(s.p95), ms_text(s.p99), ms_text(s.max));
}

}  // namespace

void LoadChoices::declare(CommandLine& line) {
  line.number(clients, "--clients", "N",
              "runs at once; each client sends its next request when one is done (default: 1)");
  line.real(rate, "--rate", "R",
            "requests a second, at random intervals; they wait in a queue until a client is free");
}

Status LoadChoices::check() const {
  if (clients && (*clients < 1 || *clients > kMostClients))
    return user_error("--clients {}: wanted 1 to {}", *clients, kMostClients);
  if (rate && !(*rate > 0 && *rate <= kMostRate))
    return user_error("--rate {}: wanted requests a second, above 0 and at most {:.0f}", *rate,
                      kMostRate);
  return {};
}

Result<LoadResult> run_load(heddle_program* program, std::vector<tensor::Literal>& inputs,
                            const LoadChoices& choices, double seconds,
                            std::optional<int64_t> requests, uint64_t seed) {
  Load load(choices.rate.value_or(0), seconds, requests, seed);
  for (int64_t i = 0; i < choices.clients.value_or(1); ++i)
    HEDDLE_RETURN_IF_ERROR(load.add_client(program, inputs));
  return load.run();
}

std::string to_string(const LoadResult& load) {
  std::string text = fmt::format("{} client{}", load.clients, load.clients == 1 ? "" : "s");
  if (load.rate > 0) text += fmt::format(", {:.4g} requests/s offered", load.rate);
  text += fmt::format(": {} requests in {:.2f} s, {:.4g} requests/s\n", load.run.size(),
                      load.seconds, load.throughput());
  text += line_of("from arrival to result", load.total);
  if (load.rate > 0) text += line_of("of this, waiting in the queue", load.queue);
  text += line_of("of this, the run", load.run);
  if (load.left > 0)
    text += fmt::format("{} requests that had arrived were not taken: the rate is too high\n",
                        load.left);
  return text;
}

nlohmann::ordered_json to_json(const LoadResult& load) {
  return {{"clients", load.clients},
          {"rate", load.rate},
          {"requests", load.run.size()},
          {"left", load.left},
          {"seconds", load.seconds},
          {"throughput", load.throughput()},
          {"total_ms", to_json(statistics_of(load.total))},
          {"queue_ms", to_json(statistics_of(load.queue))},
          {"run_ms", to_json(statistics_of(load.run))}};
}

}  // namespace heddle::tools
