/* main() of the command. All else is heddle_command() of main.cc: in the executable, or, where
   libheddle.so holds the command's code too (HEDDLE_STATIC_DEPENDENCIES), in the library. */
int heddle_command(int count, char** values);

int main(int count, char** values) { return heddle_command(count, values); }
