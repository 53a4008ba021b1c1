package suggest

import "testing"

func TestName(t *testing.T) {
	known := []string{"primary.freeze", "push.drop"}
	for _, c := range []struct {
		name  string
		known []string
		want  string
	}{
		{"push.dorp", known, `did you mean "push.drop"?`},
		{"primary.freez", known, `did you mean "primary.freeze"?`},
		{"disk", known, "known: primary.freeze, push.drop"},
		{"x", nil, "none is known here"},
	} {
		if got := Name(c.name, c.known); got != c.want {
			t.Errorf("Name(%q) = %s, want %s", c.name, got, c.want)
		}
	}
}
