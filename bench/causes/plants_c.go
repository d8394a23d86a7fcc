package causes

import "time"

// What is usual of kinds. A call that waits inside a library may do so in a function that isn't called otherwise.
var (
	waiting = []string{SlowerCalls, Self, NewPath}
	working = []string{SlowerCalls, Self}
	more    = []string{MoreCalls, NewPath}
	repeats = []string{MoreCalls, SlowerCalls, Self} // of loops: by the function that loops or by the one in the loop
	fresh   = []string{NewPath}
)

const ms = time.Millisecond

// native is a plant in C or C++.
func native(name, file, handler string, slow time.Duration, t Truth) Plant {
	compiler := "gcc"
	if file[len(file)-3:] == ".cc" {
		compiler = "g++"
	}
	return Plant{Name: name, Handler: handler, Slow: slow, Truth: t, needs: need(compiler), file: file, build: builds(file), start: compiled(file)}
}

// locks are causes of which another thread is the reason.
func locks() []Plant {
	mutex := func(path, holder string) Truth {
		return Truth{Path: []string{path, "*mutex_lock*"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{holder}}
	}
	return []Plant{
		native("lock held by another thread", "lock_held.c", "serve_page", 10*ms, mutex("config_value", "refresh_config")),
		native("lock convoy", "lock_convoy.c", "post_entry", 15*ms, mutex("append_journal", "append_journal")),
		native("priority inversion", "priority_inversion.c", "get_counter", 10*ms, mutex("count_request", "flush_stats")),
		native("log under a lock", "log_under_lock.c", "handle_order", 8*ms, mutex("log_line", "audit_log")),
		native("chain of waits", "lock_chain.c", "call_api", 10*ms, mutex("current_token", "renew_token")),
		native("spin lock", "spin_lock.c", "allocate_buffer", 8*ms, Truth{Path: []string{"spin_acquire"}, Kinds: working, States: []string{CPU}}),
		native("starved writer", "rwlock_starved.c", "put_entry", 10*ms, Truth{Path: []string{"store_entry", "*rwlock_wrlock*"}, Kinds: waiting,
			States: []string{Blocked}, WaitsFor: []string{"scan_entries", "scan_page"}}),
		native("pool of connections", "semaphore_pool.c", "list_orders", 10*ms, Truth{Path: []string{"take_connection", "*sem_wait*"}, Kinds: waiting,
			States: []string{Blocked}, WaitsFor: []string{"export_rows"}}),
		native("file lock of another process", "file_lock.c", "get_mail", 10*ms, Truth{Path: []string{"lock_store", "flock"}, Kinds: working, States: []string{Blocked}}),
		native("lock of the address space", "mmap_lock.c", "encode_frame", 6*ms, Truth{Path: []string{"map_buffer", "use_buffers", "*mmap*", "*munmap*"}, Kinds: waiting,
			States: []string{Blocked}}),
		native("allocator contention", "allocator_contention.c", "list_rows", 6*ms, Truth{Path: []string{"build_rows", "new_row", "malloc", "free"},
			Kinds: []string{SlowerCalls, Self, NewPath, MoreCalls}, States: []string{Blocked}, WaitsFor: []string{"report_memory", "mallinfo*", "*int_mallinfo*"}}),
		native("false sharing", "false_sharing.c", "record_visit", 8*ms, Truth{Path: []string{"count_hits"}, Kinds: working, States: []string{CPU}}),
		native("thread pool exhausted", "pool_exhausted.c", "answer_call", 10*ms, Truth{Path: []string{"await_job", "*cond_wait*"}, Kinds: []string{SlowerCalls, Self, NewPath, MoreCalls},
			States: []string{Blocked}, WaitsFor: []string{"make_thumbnail"}}),
		native("straggler", "straggler.c", "search_all", 10*ms, Truth{Path: []string{"gather_hits", "scatter_query", "*cond_wait*"}, Kinds: waiting,
			States: []string{Blocked}, WaitsFor: []string{"search_shard", "compact_shard"}}),
		native("late future", "future_late.cc", "show_page", 10*ms, Truth{Path: []string{"await_page", "get", "*_M_wait*", "*wait*"}, Kinds: waiting,
			States: []string{Blocked}, WaitsFor: []string{"compile_template", "compile_node"}}),
		native("lost wake-up", "lost_wakeup.c", "run_query", 15*ms, Truth{Path: []string{"wait_for_slot", "*cond_timedwait*"}, Kinds: fresh, States: []string{Blocked}}),
		native("writer of a shared mutex", "shared_mutex.cc", "dispatch", 10*ms, Truth{Path: []string{"find_route", "*rwlock_rdlock*"}, Kinds: waiting, States: []string{Blocked},
			WaitsFor: []string{"replace_routes", "check_route"}}),
		native("call_once in another thread", "call_once.cc", "check_order", 10*ms, Truth{Path: []string{"rules_of", "*call_once*", "*pthread_once*"}, Kinds: waiting, States: []string{Blocked},
			WaitsFor: []string{"load_tenant", "parse_rule"}}),
		native("eventfd of a busy thread", "busy_eventfd.c", "add_document", 8*ms, Truth{Path: []string{"await_indexer", "read"}, Kinds: waiting, States: []string{Blocked},
			WaitsFor: []string{"rebuild_index", "index_page"}}),
		native("queue full", "queue_full.c", "record_sale", 6*ms, Truth{Path: []string{"enqueue_event", "*cond_wait*"}, Kinds: waiting, States: []string{Blocked},
			WaitsFor: []string{"flush_segment", "fsync"}}),
		native("barrier", "barrier.c", "step_model", 8*ms, Truth{Path: []string{"meet", "*barrier_wait*"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"integrate", "halve_step"}}),
		native("lock held by one who waits for another process", "late_reader.c", "log_in", 8*ms, mutex("sign_token", "fetch_keys")),
		native("two causes", "two_causes.c", "show_album", 12*ms, mutex("open_album", "copy_album")),
	}
}

// waits are causes outside of the process, and its own pauses.
func waits() []Plant {
	return []Plant{
		native("slow peer, another process", "slow_peer.c", "fetch_profile", 10*ms, Truth{Path: []string{"query_backend", "recv"}, Kinds: working, States: []string{Blocked}}),
		native("slow peer, a thread", "peer_thread.c", "get_record", 10*ms, Truth{Path: []string{"ask_store", "recv"}, Kinds: working, States: []string{Blocked},
			WaitsFor: []string{"scan_store", "get_from_store"}}),
		native("name server times out", "dns_timeout.c", "connect_upstream", 20*ms, Truth{Path: []string{"send_query", "await_answer", "poll", "resolve_name"}, Kinds: repeats,
			States: []string{Blocked}}),
		native("sleep in a retry loop", "retry_sleep.c", "book_seat", 15*ms, Truth{Path: []string{"back_off"}, Kinds: fresh, States: []string{Blocked}}),
		native("reconnect", "reconnect.c", "query_database", 15*ms, Truth{Path: []string{"open_connection"}, Kinds: fresh, States: []string{Blocked}}),
		native("pipe full", "pipe_full.c", "play_track", 10*ms, Truth{Path: []string{"send_metrics", "write"}, Kinds: working, States: []string{Blocked},
			WaitsFor: []string{"digest_metrics", "merge_histogram"}}),
		native("child waited for", "child_wait.c", "receive_pack", 15*ms, Truth{Path: []string{"run_hook"}, Kinds: fresh, States: []string{Blocked}}),
		native("delayed acknowledgement", "delayed_ack.c", "put_object", 10*ms, Truth{Path: []string{"await_reply", "recv"}, Kinds: repeats, States: []string{Blocked}}),
		native("timers put together", "timer_slack.c", "stream_video", 10*ms, Truth{Path: []string{"pace", "send_chunk", "*nanosleep*"}, Kinds: working, States: []string{Blocked}}),
		native("system call held by seccomp", "seccomp_slow.c", "show_document", 10*ms, Truth{Path: []string{"check_access", "open_document", "syscall"}, Kinds: working, States: []string{Blocked}}),
		native("fsync", "fsync_stall.c", "store_item", 6*ms, Truth{Path: []string{"commit_journal"}, Kinds: fresh, States: []string{Blocked}}),
		// A quick disk takes as long as the kernel's own work for a page, here and for faults.
		native("cold page cache", "cold_cache.c", "get_blob", 8*ms, Truth{Path: []string{"read_block", "load_segment", "pread*"}, Kinds: working,
			States: []string{Blocked, CPU}}),
		native("major page faults", "major_faults.c", "find_item", 8*ms, Truth{Path: []string{"probe_index", "search_index"}, Kinds: working,
			States: []string{Blocked, CPU}}),
		native("limiter of rates", "rate_limit.c", "send_mail", 8*ms, Truth{Path: []string{"take_tokens"}, Kinds: waiting, States: []string{Blocked}}),
		native("process stopped", "stopped.c", "solve_puzzle", 30*ms, Truth{Path: []string{"*"}, Kinds: []string{SlowerCalls, Self}, States: []string{Blocked, Ready}}),
	}
}

// kernelWork are causes that cost time of the processor outside of the program's code.
func kernelWork() []Plant {
	return []Plant{
		native("memory given back by madvise", "madvise_reclaim.c", "push_event", 8*ms, Truth{Path: []string{"touch_arena", "resume_session"}, Kinds: working, States: []string{CPU}}),
		native("fresh pages", "page_zeroing.c", "render_tile", 4*ms, Truth{Path: []string{"paint_background"}, Kinds: working, States: []string{CPU}}),
		native("malloc_trim", "malloc_trim.c", "manage_cache", 8*ms, Truth{Path: []string{"release_memory"}, Kinds: fresh, States: []string{CPU}}),
		native("fork of a large process", "fork_large.c", "upload_image", 6*ms, Truth{Path: []string{"spawn_helper"}, Kinds: fresh, States: []string{CPU}}),
		native("copy on write", "copy_on_write.c", "ingest_batch", 5*ms, Truth{Path: []string{"add_to_counter", "update_counters"}, Kinds: working, States: []string{CPU}}),
		native("slow memory", "slow_memory.c", "suggest_friends", 8*ms, Truth{Path: []string{"walk_graph", "rank_neighbours"}, Kinds: working, States: []string{CPU}}),
		native("signal storm", "signal_storm.c", "sum_table", 8*ms, Truth{Path: []string{"on_signal", "take_sample"}, Kinds: more, States: []string{CPU}}),
		native("processor hog", "cpu_hog.c", "search_documents", 30*ms, Truth{Path: []string{"*"}, Kinds: []string{SlowerCalls, Self}, States: []string{Ready}}),
		native("throttled cgroup", "cgroup_throttle.c", "quote_prices", 12*ms, Truth{Path: []string{"*"}, Kinds: []string{SlowerCalls, Self}, States: []string{Ready}}),
		native("bytes read one by one", "byte_reads.c", "accept_upload", 3*ms, Truth{Path: []string{"read_chunked"}, Kinds: fresh, States: []string{CPU}}),
		native("large directory", "big_directory.c", "browse_files", 3*ms, Truth{Path: []string{"list_directory"}, Kinds: repeats, States: []string{CPU}}),
		native("large region given back", "large_unmap.c", "end_session", 4*ms, Truth{Path: []string{"drop_buffer", "munmap"}, Kinds: working, States: []string{CPU},
			Else: &Truth{Path: []string{"open_buffer", "mmap", "drop_buffer", "munmap"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"drop_buffer", "munmap"}}}),
		native("large file cut", "truncate_spool.c", "put_job", 4*ms, Truth{Path: []string{"reset_spool"}, Kinds: fresh, States: []string{CPU}}),
		native("tried again at once", "again_again.c", "track_click", 4*ms, Truth{Path: []string{"publish", "offer_event"}, Kinds: repeats, States: []string{CPU}}),
	}
}

// moreWork are causes in which the program itself has more to do.
func moreWork() []Plant {
	return []Plant{
		native("hash collision", "hash_collision.c", "answer_query", 8*ms, Truth{Path: []string{"table_find", "key_equal"}, Kinds: repeats, States: []string{CPU}}),
		native("quadratic input", "quadratic_input.c", "tag_item", 8*ms, Truth{Path: []string{"unique_tags"}, Kinds: repeats, States: []string{CPU}}),
		native("large payload", "big_payload.c", "relay_message", 5*ms, Truth{Path: []string{"copy_payload", "pass_message", "*memcpy*", "*memmove*"}, Kinds: working, States: []string{CPU}}),
		native("backtracking", "backtracking.c", "filter_mail", 4*ms, Truth{Path: []string{"match_here", "match_star"}, Kinds: repeats, States: []string{CPU}}),
		native("table grows", "table_grows.c", "open_session", 3*ms, Truth{Path: []string{"grow_table"}, Kinds: fresh, States: []string{CPU}}),
		native("deep recursion", "deep_recursion.c", "total_account", 3*ms, Truth{Path: []string{"visit_node"}, Kinds: repeats, States: []string{CPU}}),
		native("nothing remembered", "memo_miss.c", "plan_trip", 5*ms, Truth{Path: []string{"compute_route"}, Kinds: fresh, States: []string{CPU}}),
		native("large sort", "big_sort.c", "select_ordered", 5*ms, Truth{Path: []string{"sort_rows", "qsort*", "msort*", "compare_rows"}, Kinds: repeats, States: []string{CPU}}),
		native("decompression", "decompression.c", "cat_file", 6*ms, Truth{Path: []string{"expand_block", "copy_match"}, Kinds: repeats, States: []string{CPU}}),
		native("std::regex", "std_regex.cc", "route_request", 2*ms, Truth{Path: []string{"match_route"}, Kinds: repeats, States: []string{CPU}}),
		native("denormal floats", "denormal_floats.c", "encode_audio", 3*ms, Truth{Path: []string{"filter_band"}, Kinds: working, States: []string{CPU}}),
		native("sorted input", "sorted_input.c", "list_invoice", 4*ms, Truth{Path: []string{"quick_sort", "partition"}, Kinds: repeats, States: []string{CPU}}),
		native("buffer grown by steps", "buffer_steps.c", "export_table", 8*ms, Truth{Path: []string{"grow_buffer"}, Kinds: repeats, States: []string{CPU}}),
		native("below a recursion", "below_recursion.c", "show_template", 4*ms, Truth{Path: []string{"call_builtin", "mix"}, Kinds: repeats, States: []string{CPU}}),
	}
}

// otherWork are causes in which the program does something else than usual.
func otherWork() []Plant {
	return []Plant{
		native("another branch", "branch_by_argument.c", "export_report", 6*ms, Truth{Path: []string{"format_pdf"}, Kinds: fresh, States: []string{CPU}}),
		native("log rotation", "log_rotation.c", "serve_file", 4*ms, Truth{Path: []string{"rotate_log"}, Kinds: fresh, States: []string{CPU, Blocked}}),
		native("slow callee of a callback", "slow_callback.c", "import_rows", 8*ms, Truth{Path: []string{"sign_row", "audit_row"}, Kinds: repeats, States: []string{CPU}}),
		native("handshake", "handshake.c", "accept_client", 5*ms, Truth{Path: []string{"agree_on_key"}, Kinds: fresh, States: []string{CPU}}),
		native("exceptions", "exceptions.cc", "import_csv", 3*ms, Truth{Path: []string{"parse_number", "number_or_zero", "__cxa_throw", "_Unwind_*"}, Kinds: []string{NewPath, SlowerCalls, Self, MoreCalls}, States: []string{CPU}}),
		native("container copied", "copied_container.cc", "quote_market", 3*ms, Truth{Path: []string{"*_M_copy*", "*_Rb_tree*", "*_M_construct*", "operator new*"},
			Kinds: repeats, States: []string{CPU}}),
		native("built late", "static_init.cc", "apply_rules", 3*ms, Truth{Path: []string{"Tenant::Tenant", "add_rule"}, Kinds: fresh, States: []string{CPU}}),
		native("slow class of a virtual call", "virtual_slow.cc", "value_book", 5*ms, Truth{Path: []string{"basket::price"}, Kinds: fresh, States: []string{CPU}}),
		native("cache filled, among requests of two kinds", "two_kinds.c", "draw_map", 4*ms, Truth{Path: []string{"fill_cache"}, Kinds: fresh, States: []string{CPU}}),
		native("large tree taken down", "destructor.cc", "save_document", 4*ms, Truth{Path: []string{"close_document", "*_M_erase*", "document::~document", "free", "*operator delete*"}, Kinds: repeats, States: []string{CPU}}),
		native("log of one tenant", "debug_log.c", "filter_packet", 3*ms, Truth{Path: []string{"log_debug"}, Kinds: fresh, States: []string{CPU}}),
	}
}
