package k6options

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/metachaos/metachaos/internal/suggest"
	"github.com/metachaos/metachaos/load/script"
)

// Log is where messages go, and how they look.
type Log struct {
	// Output is stderr, stdout, none or file; File is the path of the latter.
	Output, File string
	// Format is text, json or raw.
	Format string
	Level  slog.Level
	// Console is a file for what scripts print, or empty for the log.
	Console string
}

func parseLog(all values) (Log, error) {
	l := Log{Format: all.text(flagLogFormat, "text"), Console: all.text("consoleOutput", "")}
	if all[flagVerbose] == true {
		l.Level = slog.LevelDebug
	}
	destination, settings, _ := strings.Cut(all.text(flagLogOutput, "stderr"), ",")
	kind, path, hasPath := strings.Cut(destination, "=")
	l.Output, l.File = kind, path
	switch kind {
	case "stderr", "stdout", "none":
		if hasPath || settings != "" {
			return l, errorf(script.ExitOther, "--%s %s: %s takes no settings", flagLogOutput, destination, kind)
		}
	case "file":
		if path == "" {
			return l, errorf(script.ExitOther, "--%s file: want file=PATH", flagLogOutput)
		}
		return l, l.fileSettings(settings)
	case "loki":
		return l, errorf(script.ExitOther, "--%s loki: messages are not sent to Loki; write them to a file that an agent ships (file=PATH)", flagLogOutput)
	default:
		return l, errorf(script.ExitOther, "--%s %q: want stderr, stdout, none or file=PATH; %s", flagLogOutput, kind,
			suggest.Name(kind, []string{"stderr", "stdout", "none", "file"}))
	}
	return l, nil
}

// fileSettings reads what stands after the path of a log file.
func (l *Log) fileSettings(text string) error {
	if text == "" {
		return nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		if name != "level" {
			return errorf(script.ExitOther, "--%s: unknown setting %q of a log file: want level=debug|info|warn|error", flagLogOutput, pair)
		}
		level, err := parseLevel(value)
		if err != nil {
			return errorf(script.ExitOther, "--%s: %w", flagLogOutput, err)
		}
		l.Level = level
	}
	return nil
}

func parseLevel(name string) (slog.Level, error) {
	switch name {
	case "trace", "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error", "fatal", "panic":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("unknown level %q: want debug, info, warn or error", name)
}
