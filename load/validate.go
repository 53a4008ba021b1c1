package load

import (
	"fmt"
	"time"
)

// shortest is the least duration of an executor: a shorter one is nearly
// always a number of seconds that was taken for milliseconds.
const shortest = time.Second

func fieldError(field, want string, got any) error {
	return fmt.Errorf("%s: %s, got %v", field, want, got)
}

func atLeast(field string, got, least int64) error {
	if got < least {
		return fieldError(field, fmt.Sprintf("want %d or more", least), got)
	}
	return nil
}

func longEnough(field string, d time.Duration) error {
	if d < shortest {
		return fieldError(field, fmt.Sprintf("want %v or more", shortest), d)
	}
	return nil
}

func validStages(stages []Stage, targetField string) error {
	if len(stages) == 0 {
		return fieldError("stages", "want at least one stage", "none")
	}
	for i, s := range stages {
		if s.Duration < 0 {
			return fieldError(fmt.Sprintf("stages[%d].duration", i), "want 0 or more", s.Duration)
		}
		if s.Target < 0 {
			return fieldError(fmt.Sprintf("stages[%d].%s", i, targetField), "want 0 or more", s.Target)
		}
	}
	return nil
}

func validPool(pre, most int) error {
	if err := atLeast("preAllocatedVUs", int64(pre), 1); err != nil {
		return err
	}
	if most < pre {
		return fieldError("maxVUs", fmt.Sprintf("want at least preAllocatedVUs (%d)", pre), most)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
