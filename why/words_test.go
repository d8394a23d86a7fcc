package why

import "testing"

func TestLongNamesAreBrief(t *testing.T) {
	for name, want := range map[string]string{
		"mix(void const*, unsigned int)": "mix(void const*, unsigned int)",
		"std::_Rb_tree<std::string, std::pair<std::string const, std::string>, std::_Select1st<x>>::_M_erase(std::_Rb_tree_node<x>*)": "std::_Rb_tree<…>::_M_erase(…)",
		"operator<<(std::basic_ostream<char, std::char_traits<char>>&, std::basic_string<char, std::char_traits<char>> const&)":       "operator<<(…)",
		"a<(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((":                       "a<…",
	} {
		if got := brief(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
