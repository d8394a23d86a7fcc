package waitcalls

import "testing"

func TestCallsAreKnownByAllTheirNames(t *testing.T) {
	for name, want := range map[string]string{
		"pthread_mutex_lock": "pthread_mutex_lock", "__pthread_mutex_lock": "pthread_mutex_lock", "__GI___pthread_mutex_lock": "pthread_mutex_lock",
		"pthread_mutex_lock@@GLIBC_2.2.5": "pthread_mutex_lock", "__libc_read": "read", "__GI___libc_read": "read", "__read_nocancel": "read", "__new_sem_wait": "sem_wait",
		"__pthread_mutex_unlock_usercnt": "pthread_mutex_unlock", "accept4": "accept",
	} {
		c, ok := Of([]string{"nothing", name})
		if d, known := Of([]string{want}); !ok || !known || c != d {
			t.Errorf("%s: %+v, not %+v", name, c, d)
		}
	}
	for _, name := range []string{"", "_", "reader", "pthread_mutex_init", "my_read", "Read", "std::mutex::lock"} {
		if c, ok := Of([]string{name}); ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
