package plans

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metachaos/metachaos/internal/suggest"
)

//go:embed library
var library embed.FS

// Library returns the names of the plans that the binary carries, sorted.
func Library() []string {
	var names []string
	// The walk cannot fail: the tree is part of the binary.
	_ = fs.WalkDir(library, "library", func(p string, _ fs.DirEntry, _ error) error {
		if name, ok := strings.CutSuffix(p, ".yaml"); ok {
			names = append(names, strings.TrimPrefix(name, "library/"))
		}
		return nil
	})
	slices.Sort(names)
	return names
}

// File is a plan file with access to what lies beside it.
type File struct {
	Path string // as given, or library:NAME
	Data []byte
	// ReadFile reads a script or data file; a path that is not absolute counts
	// from the folder of the plan.
	ReadFile func(path string) ([]byte, error)
}

// LibraryScheme marks paths of files that the binary carries.
const LibraryScheme = "library:"

// Open reads the plan file at a path, or else the library plan of that name.
// readDisk reads a file of the disk; a name that ends in .yaml or .yml is
// always a path.
func Open(nameOrPath string, readDisk func(string) ([]byte, error)) (*File, error) {
	isPath := strings.HasSuffix(nameOrPath, ".yaml") || strings.HasSuffix(nameOrPath, ".yml")
	if !isPath {
		return openLibrary(nameOrPath)
	}
	data, err := readDisk(nameOrPath)
	if err != nil {
		return nil, fmt.Errorf("read plan %s: %w", nameOrPath, err)
	}
	return &File{Path: nameOrPath, Data: data, ReadFile: func(p string) ([]byte, error) {
		if !filepath.IsAbs(p) {
			p = filepath.Join(filepath.Dir(nameOrPath), p)
		}
		return readDisk(p)
	}}, nil
}

func openLibrary(name string) (*File, error) {
	data, err := library.ReadFile(path.Join("library", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("no plan named %q: %s", name, suggest.Name(name, Library()))
	}
	return &File{Path: LibraryScheme + name + ".yaml", Data: data, ReadFile: func(p string) ([]byte, error) {
		return library.ReadFile(path.Join("library", p))
	}}, nil
}

// LoadFile opens and parses a plan in one step.
func LoadFile(nameOrPath string, readDisk func(string) ([]byte, error)) (*Plan, *File, error) {
	f, err := Open(nameOrPath, readDisk)
	if err != nil {
		return nil, nil, err
	}
	p, err := Parse(f.Path, f.Data)
	return p, f, err
}

// Dir returns the folder of the plan, with forward slashes, for the paths of
// scripts in messages.
func (f *File) Dir() string {
	if rest, ok := strings.CutPrefix(f.Path, LibraryScheme); ok {
		return LibraryScheme + path.Dir(rest)
	}
	return filepath.ToSlash(filepath.Dir(f.Path))
}
