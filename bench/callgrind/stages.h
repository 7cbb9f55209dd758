/* stages.h: the stages that have to do with text, for stages.c. */
#ifndef STAGES_H
#define STAGES_H

#include "run.h"

typedef struct {
  const char *name;
  void (*make)(void); /* makes the input; not counted */
  void (*run)(void);
} stage;

void make_table(void);
void scan(void);
void make_names(void);
void names(void);
void make_rows(void);
void rows(void);
void make_dict_lines(void);
void dict(void);
void make_events(void);
void kineto(void);

#endif
