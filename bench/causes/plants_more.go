package causes

// seldom are causes of further kinds, each of which was judged before the code was changed for it.
func seldom() []Plant {
	held := func(path, holder string) Truth {
		return Truth{Path: []string{path, "*mutex_lock*"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{holder}}
	}
	return []Plant{
		native("thundering herd", "herd.c", "enter_hall", 3*ms, Truth{Path: []string{"read_counter", "*mutex_lock*"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"pass_gate", "check_ticket"}}),
		native("mprotect by another thread", "mprotect_peer.c", "run_fiber", 1*ms, Truth{Path: []string{"take_stack", "use_stack", "drop_stack", "*mmap*", "*munmap*"}, Kinds: waiting, States: []string{Blocked},
			WaitsFor: []string{"write_barrier", "protect_piece", "*mprotect*"}}),
		native("pattern of POSIX", "posix_regex.c", "screen_mail", 3*ms, Truth{Path: []string{"match_rule", "regexec*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		native("lock by try and yield", "yield_spin.c", "reserve_item", 6*ms, Truth{Path: []string{"lock_stock"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU, Ready}}),
		native("lock with inherited priorities", "pi_mutex.c", "play_buffer", 8*ms, held("mix_channels", "load_effect")),
		native("semaphore of System V", "sysv_semaphore.c", "put_tuple", 8*ms, Truth{Path: []string{"lock_segment", "change", "semop"}, Kinds: waiting, States: []string{Blocked}}),
		native("client that reads slowly", "slow_reader.c", "serve_asset", 6*ms, Truth{Path: []string{"send_reply", "send_part", "send"}, Kinds: append([]string{MoreCalls}, waiting...), States: []string{Blocked}}),
		native("thread made and joined", "joined_thread.c", "show_picture", 6*ms, Truth{Path: []string{"run_isolated", "*pthread_join*"}, Kinds: fresh, States: []string{Blocked}, WaitsFor: []string{"make_thumbnail", "thumbnail_row"}}),
		native("sscanf of a long list", "sscanf_long.c", "load_inventory", 3*ms, Truth{Path: []string{"read_items", "*sscanf*"}, Kinds: repeats, States: []string{CPU}}),
		native("mapped file made sure of", "mapped_flush.c", "update_row", 5*ms, Truth{Path: []string{"flush_table", "msync"}, Kinds: fresh, States: []string{Blocked, CPU}}),
		native("two locks, tried and let go", "trylock_backoff.c", "move_money", 8*ms, Truth{Path: []string{"lock_both", "wait_a_little", "*nanosleep*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{Blocked}}),
		native("lock of a stream", "stdio_lock.c", "get_page", 8*ms, Truth{Path: []string{"log_access", "*fputs*"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"write_audit", "audit_record"}}),
		native("fork by another thread", "forked_beside.c", "append_entry", 3*ms, Truth{Path: []string{"map_segment", "*mmap*", "*munmap*"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"take_snapshot", "*fork*"}}),
		native("work on a coroutine's stack", "coroutine.c", "print_page", 4*ms, Truth{Path: []string{"typeset", "lay_out"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		native("vector filled from its front", "front_insert.cc", "order_events", 3*ms, Truth{Path: []string{"add_front", "*insert*", "*memmove*"}, Kinds: repeats, States: []string{CPU}}),
	}
}
