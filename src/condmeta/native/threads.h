// Threads over independent tasks, started for one call and joined before it returns.
//
// A free thread takes the next chunk of tasks. The result of a task depends only on the task, so it does not
// depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

// A workspace of doubles on a 64-byte boundary, one for each thread.
class Workspaces {
public:
    Workspaces(int64_t threads, int64_t doubles) {
        for (int64_t i = 0; i < threads; ++i) blocks_.emplace_back(allocate(doubles));
    }
    double* operator[](int64_t i) const { return blocks_[size_t(i)].get(); }

private:
    struct Release {
        void operator()(double* p) const { ::operator delete(p, std::align_val_t{64}); }
    };
    static double* allocate(int64_t doubles) {
        return static_cast<double*>(::operator new(size_t(doubles) * sizeof(double), std::align_val_t{64}));
    }
    std::vector<std::unique_ptr<double, Release>> blocks_;
};

// Runs work(begin, end, workspace) over [0, count), at most `most` at a time if there are several threads.
// If the system cannot start more threads, fewer are used.
template <class Work>
void for_tasks(int64_t count, int64_t n_jobs, int64_t doubles, Work work, int64_t most = 256) {
    const int64_t jobs = std::max<int64_t>(1, std::min(n_jobs, count));
    const int64_t chunk = jobs == 1 ? count : std::max<int64_t>(1, std::min<int64_t>(most, count / (8 * jobs)));
    const Workspaces spaces(jobs, doubles);
    std::atomic<int64_t> next{0};
    auto run = [&](int64_t job) {
        for (int64_t begin; (begin = next.fetch_add(chunk)) < count;)
            work(begin, std::min(begin + chunk, count), spaces[job]);
    };
    std::vector<std::thread> threads;
    threads.reserve(size_t(jobs));
    for (int64_t job = 1; job < jobs; ++job) {
        try {
            threads.emplace_back(run, job);
        } catch (const std::system_error&) {
            break;
        }
    }
    run(0);
    for (std::thread& thread : threads) thread.join();
}
