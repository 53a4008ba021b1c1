package k6options

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/metachaos/metachaos/load/script"
)

// config is what the configuration file holds.
type config struct {
	options script.Layer
	out     []string
	linger  bool
}

// readConfig reads the configuration file. One that was asked for must be
// there; the one at the default place need not.
func readConfig(all values, lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (config, error) {
	path := all.text(flagConfig, "")
	asked := path != ""
	if !asked {
		path = defaultConfigPath(lookup)
	}
	if path == "" {
		return config{}, nil
	}
	text, err := readFile(path)
	if err != nil {
		if !asked && errors.Is(err, fs.ErrNotExist) {
			return config{}, nil
		}
		return config{}, errorf(script.ExitConfig, "read configuration file: %w", err)
	}
	c := config{options: script.Layer{}}
	if err := json.Unmarshal(text, &c.options); err != nil {
		return config{}, errorf(script.ExitConfig, "read configuration file %s: want an object of options in JSON: %w", path, err)
	}
	for name, into := range map[string]any{"out": &c.out, "linger": &c.linger} {
		if raw, ok := c.options[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return config{}, errorf(script.ExitConfig, "read configuration file %s: %s: %w", path, name, err)
			}
		}
	}
	for _, name := range [...]string{"out", "linger", "noUsageReport", "collectors", "webDashboard"} {
		delete(c.options, name) // they are no options of scripts
	}
	return c, nil
}

func defaultConfigPath(lookup func(string) (string, bool)) string {
	if dir, ok := lookup("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "k6", "config.json")
	}
	if home, ok := lookup("HOME"); ok && home != "" {
		return filepath.Join(home, ".config", "k6", "config.json")
	}
	return ""
}
