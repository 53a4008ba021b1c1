package cli

import (
	"fmt"
	"os"

	"github.com/metachaos/metachaos/internal/k6options"
	k6secrets "github.com/metachaos/metachaos/load/modules/secrets"
)

// session is what k6's flags, environment and configuration file come to: the
// options, where logs go, and the secrets that must not show there.
type session struct {
	k6options.Resolved
	*k6options.Loggers
	secrets *k6secrets.Sources
}

// openSession lays the options over each other and opens the logs. The caller
// closes it.
func (a *app) openSession(flags *k6options.Set) (*session, error) {
	k6, err := flags.Resolve(os.Environ(), os.ReadFile)
	if err != nil {
		return nil, err
	}
	s := &session{Resolved: k6, secrets: &k6secrets.Sources{}}
	for _, definition := range k6.SecretSources {
		if err := s.secrets.Add(definition, os.ReadFile); err != nil {
			return nil, fmt.Errorf("--secret-source: %w", err)
		}
	}
	s.Loggers, err = k6.Log.Open(k6options.Streams{Stdout: a.Out, Stderr: a.Err, Append: appendFile}, s.secrets.Hide)
	if err != nil {
		return nil, err
	}
	for _, w := range k6.Warnings {
		s.Loggers.Log.Warn(w)
	}
	return s, nil
}

// close ends the log files.
func (a *app) close(s *session) {
	if err := s.Close(); err != nil {
		fmt.Fprintln(a.Err, "metachaos: close log:", err)
	}
}
