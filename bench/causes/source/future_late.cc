// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* A future that is late: the thread that has to fulfil it compiles a template first. */
#include "server.h"
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>

class Executor {
public:
    FN void post(std::function<void()> f)
    {
        {
            std::lock_guard<std::mutex> hold(lock);
            tasks.push_back(std::move(f));
        }
        more.notify_one();
    }
    void run()
    {
        std::unique_lock<std::mutex> hold(lock);
        while (serving) {
            if (tasks.empty()) {
                more.wait(hold);
                continue;
            }
            std::function<void()> f = std::move(tasks.front());
            tasks.pop_front();
            hold.unlock();
            f();
            hold.lock();
        }
    }

private:
    std::mutex lock;
    std::condition_variable more;
    std::deque<std::function<void()>> tasks;
};

static Executor executor;
static void executor_main() { executor.run(); }

FN static unsigned compile_node(unsigned i) { return mix("template", 8, 600 + i); }

FN static unsigned compile_template()
{
    unsigned v = 0;
    for (unsigned i = 0; i < 100; i++)
        v ^= compile_node(i);
    return v;
}

static void editor()
{
    for (; serving; pause_ms(300))
        executor.post([] { compile_template(); });
}

FN static unsigned fill_template(unsigned id) { return mix("filled", 6, 20 + id % 10); }

FN static unsigned await_page(std::future<unsigned> &page) { return page.get(); }

FN static void show_page(struct request *r)
{
    auto promise = std::make_shared<std::promise<unsigned>>();
    std::future<unsigned> page = promise->get_future();
    unsigned id = r->id;
    parse_request(r);
    executor.post([promise, id] { promise->set_value(fill_template(id)); });
    r->seed ^= await_page(page) | 1;
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("executor", executor_main);
    background("editor", editor);
    static struct server s;
    s.handle = show_page, s.slow_ms = 10;
    return serve(argc, argv, &s);
}
