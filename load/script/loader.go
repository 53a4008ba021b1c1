package script

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/grafana/sobek"
)

// loader finds and compiles the modules and files of a script, once for all
// runtimes. It is filled by the first init and locked after it: what later
// inits ask for must have been seen before, so that all VUs run the same code.
type loader struct {
	source Source
	native map[string]Module
	remote bool // addresses may be imported

	mu      sync.RWMutex
	locked  bool
	modules map[string]loaded             // by path or native name
	paths   map[sobek.ModuleRecord]string // of files
	files   map[string]string             // what open() has read
	vms     map[*sobek.Runtime]*vm        // runtimes that are in init
}

type loaded struct {
	record sobek.ModuleRecord
	err    error
}

func newLoader(source Source, native map[string]Module, remote bool) *loader {
	return &loader{source: source, native: native, remote: remote, modules: map[string]loaded{},
		paths: map[sobek.ModuleRecord]string{}, files: map[string]string{}, vms: map[*sobek.Runtime]*vm{}}
}

func (l *loader) lock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locked = true
}

func (l *loader) enter(v *vm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.vms[v.rt] = v
}

func (l *loader) leave(v *vm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.vms, v.rt)
}

func (l *loader) vmOf(rt *sobek.Runtime) *vm {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.vms[rt]
}

// resolve is the hook of the JavaScript engine: it returns the module that a
// specifier means in the referring module.
func (l *loader) resolve(referrer any, specifier string) (sobek.ModuleRecord, error) {
	from := l.source.Path
	if record, ok := referrer.(sobek.ModuleRecord); ok {
		l.mu.RLock()
		if path, ok := l.paths[record]; ok {
			from = path
		}
		l.mu.RUnlock()
	}
	return l.load(from, specifier)
}

func (l *loader) load(from, specifier string) (sobek.ModuleRecord, error) {
	key, err := l.key(from, specifier)
	if err != nil {
		return nil, withCode(ExitScript, err)
	}
	l.mu.RLock()
	got, known := l.modules[key]
	locked := l.locked
	l.mu.RUnlock()
	switch {
	case known:
		return got.record, got.err
	case locked:
		return nil, errorf(ExitScript, "import %q: the first init did not import it, so no VU can", specifier)
	}
	record, err := l.make(key, specifier)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.modules[key] = loaded{record, err}
	if _, isNative := l.native[key]; !isNative && err == nil {
		l.paths[record] = key
	}
	return record, err
}

// key returns the path or the native name that a specifier means.
func (l *loader) key(from, specifier string) (string, error) {
	switch {
	case l.native[specifier] != nil:
		return specifier, nil
	case specifier == "k6" || strings.HasPrefix(specifier, "k6/"):
		return "", unsupported(specifier, slices.Sorted(maps.Keys(l.native)))
	case isRemote(specifier) && !l.remote:
		return "", refuseRemote(specifier)
	case isRemote(specifier):
		return specifier, nil
	case strings.HasPrefix(specifier, "file://"), strings.HasPrefix(specifier, "/"),
		strings.HasPrefix(specifier, "./"), strings.HasPrefix(specifier, "../"), specifier == l.source.Path:
	default:
		return "", fmt.Errorf("import %q: not a module of this program and not a path; paths start with ./, ../ or /, and packages of npm must be bundled into a file", specifier)
	}
	if specifier == l.source.Path {
		return specifier, nil
	}
	if isRemote(from) && !strings.HasPrefix(specifier, "file://") {
		return locateRemote(from, specifier)
	}
	return locate(from, specifier), nil
}

func (l *loader) make(key, specifier string) (sobek.ModuleRecord, error) {
	if module := l.native[key]; module != nil {
		return &nativeRecord{name: key, module: module, loader: l}, nil
	}
	code, err := l.text(key, specifier)
	if err != nil {
		return nil, withCode(ExitScript, err)
	}
	c, err := compile(key, code, l.resolve)
	if err != nil {
		return nil, withCode(ExitScript, err)
	}
	if c.module != nil {
		return c.module, nil
	}
	return &commonRecord{program: c.common, loader: l, path: key}, nil
}

// text returns the code of a module. Remote ones are fetched within the time
// of the first init.
func (l *loader) text(key, specifier string) ([]byte, error) {
	if isRemote(key) {
		code, err := fetch(l.initContext(), key)
		if err != nil {
			return nil, fmt.Errorf("import %q: %w", specifier, err)
		}
		return code, nil
	}
	code, err := l.source.text(key)
	if err != nil {
		return nil, fmt.Errorf("import %q: %w; the extension must be written out", specifier, err)
	}
	return code, nil
}

// initContext is that of the first init, the only one in which modules are
// read.
func (l *loader) initContext() context.Context {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, v := range l.vms {
		return v.running
	}
	return context.Background() // no init runs, so nothing is waited for
}

// open returns the content of a file, for the function of that name.
func (l *loader) open(name string) (string, error) {
	l.mu.RLock()
	text, known := l.files[name]
	locked := l.locked
	l.mu.RUnlock()
	switch {
	case known:
		return text, nil
	case locked:
		return "", fmt.Errorf("open %q: the first init did not open it, so no VU can", name)
	}
	b, err := l.source.text(name)
	if err != nil {
		return "", fmt.Errorf("open %q: %w", name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[name] = string(b)
	return l.files[name], nil
}
